"""Errors a person can act on.

ParaRecoverError
├── InputError       a file, row or value that cannot be used as it is
├── AgreementError   figures that cannot be computed from what was given
├── StoreError       the database refused
│   ├── StaleScoreError    another tab or process scored first
│   └── NewerStoreError    the database was written by a newer version
└── ConfigError      a setting, flag or environment that must be fixed first
"""


class ParaRecoverError(Exception):
    """What happened, where, what was expected and what to do.

    Args:
        where: File and line, field, command or setting.
        got: What was found there.
        expected: What should have been there.
        cure: What the reader can do now, as a sentence without a full stop.
    """

    def __init__(self, where: str, got: str, expected: str, cure: str) -> None:
        super().__init__(where, got, expected, cure)
        self.where, self.got, self.expected, self.cure = where, got, expected, cure

    def __str__(self) -> str:
        return f"{self.where}: got {self.got}, expected {self.expected}. {self.cure.rstrip('.')}."


class InputError(ParaRecoverError):
    """A file, row or value cannot be used as it is."""


class AgreementError(ParaRecoverError):
    """Figures cannot be computed from what was given."""


class StoreError(ParaRecoverError):
    """The database refused an operation."""


class StaleScoreError(StoreError):
    """Another tab or process wrote this score first."""


class NewerStoreError(StoreError):
    """The database was written by a newer version than this one."""


class ConfigError(ParaRecoverError):
    """A setting, flag or environment variable must be fixed first."""
