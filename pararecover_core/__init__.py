"""ParaRecover core: plans, records, taxonomy, rubric, scores. No Streamlit, no SQLite."""

__version__ = "0.1.0"
