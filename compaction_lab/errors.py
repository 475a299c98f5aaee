"""The exception tree. Every message says where, what was found, what was expected and what to do next."""


class CompactionLabError(Exception):
    """Anything the lab refuses to do; the command line prints its text and exits with ``exit_code``."""

    exit_code = 1


class ConfigurationError(CompactionLabError):
    """A name, override, parameter or combination of options that the lab does not know or cannot honour."""


class TranscriptError(CompactionLabError):
    """A record that is not a conversation the lab can replay: names the file, the line and the field."""


class StrategyError(CompactionLabError):
    """A strategy that broke the rules: it edited a hidden message, touched a pinned one, or raised."""


class SummarizerMissing(StrategyError):
    """A strategy asked for a summary and no summarizer was given."""


class ModelError(CompactionLabError):
    """A model call that did not give a usable reply; the unit that made it stays owed."""


class ContextOverflow(ModelError):
    """The prompt does not fit the model's window: the strategy's result, not an infrastructure failure."""


class NotCached(ModelError):
    """A reply that the response cache does not have, while no call may be made; the unit stays owed, untouched."""


class BudgetReached(ModelError):
    """A call that was not made because it could exceed ``--max-cost``; the unit stays owed, untouched."""


class StoreError(CompactionLabError):
    """A run folder that cannot be read or written as the lab expects."""


class TokenizerError(CompactionLabError):
    """An encoding whose vocabulary is not available on this machine."""


class StatisticsError(CompactionLabError):
    """A comparison that the data cannot support, such as arms over different transcripts."""


class FigureError(CompactionLabError, ValueError):
    """A figure or table asked of a frame that has nothing in it to show."""
