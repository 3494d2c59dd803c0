"""One package a page; each has ``render()``."""
