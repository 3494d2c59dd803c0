"""The executable tool environment: real Python functions with typed schemas."""
