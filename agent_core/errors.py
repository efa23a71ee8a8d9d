"""Errors, named by what happens next.

    AgentError                   anything this package raises on purpose; `code` is its wire code or None
      UserError                  the caller must change the call, the configuration or the repository
        UnknownAgent, UnknownAgentType, AgentDenied, NotTrusted, WorktreeFailed (GitFailed), ReviewConflict,
        NotReviewable, MissingCredentials, LimitReached, AlreadyTerminal, OwnedElsewhere, NotAllowed, TranscriptFailed
      ToolError                  shown to the model as an error result; its loop goes on
      ModelError                 the model service failed
        RetryableModelError      worth another try after `retry_after` seconds
        FatalModelError          ends the run as failed
          ContextFull            unless the prompt can be made shorter

A message says what was wrong, quotes the value, and names the setting, file or field and the fix.
"""

from __future__ import annotations

from typing import ClassVar


class AgentError(Exception):
    code: ClassVar[str | None] = None


class UserError(AgentError):
    code: ClassVar[str | None] = None


class UnknownAgent(UserError):
    code = "unknownAgent"


class UnknownAgentType(UserError):
    code = "unknownAgentType"


class AgentDenied(UserError):
    code = "agentDenied"


class NotTrusted(UserError):
    code = "notTrusted"


class WorktreeFailed(UserError):
    code = "worktreeFailed"


class GitFailed(WorktreeFailed):
    """A git command failed; `exit_code` is git's own."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ReviewConflict(UserError):
    code = "conflict"


class NotReviewable(UserError):
    code = "notReviewable"


class MissingCredentials(UserError):
    code = "missingCredentials"


class LimitReached(UserError):
    code = "limitReached"


class AlreadyTerminal(UserError):
    code = "alreadyTerminal"


class OwnedElsewhere(UserError):
    code = "ownedElsewhere"


class NotAllowed(UserError):
    code = "notAllowed"


class InvalidParams(UserError):
    """A field of the call is wrong; `field` is its path on the wire, such as `cwd`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class ToolError(AgentError):
    """The text is what the model reads."""


class TranscriptFailed(UserError):
    """What an agent did cannot be written, or read again: names the file and the reason."""

    code = "unknownAgent"


class ModelError(AgentError):
    pass


class RetryableModelError(ModelError):
    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class FatalModelError(ModelError):
    pass


class ContextFull(FatalModelError):
    pass
