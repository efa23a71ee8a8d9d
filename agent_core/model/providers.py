"""Who serves the models, and who pays: the service itself or a cloud, by the variables that people's tools use already.

    anthropic  ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL
    bedrock    AWS_REGION, AWS_BEARER_TOKEN_BEDROCK or what boto3 finds, ANTHROPIC_BEDROCK_BASE_URL
    vertex     CLOUD_ML_REGION, ANTHROPIC_VERTEX_PROJECT_ID, what google-auth finds, ANTHROPIC_VERTEX_BASE_URL
    foundry    ANTHROPIC_FOUNDRY_API_KEY, ANTHROPIC_FOUNDRY_RESOURCE or ANTHROPIC_FOUNDRY_BASE_URL

The setting `provider` chooses, else CLAUDE_CODE_USE_BEDROCK, CLAUDE_CODE_USE_VERTEX or CLAUDE_CODE_USE_FOUNDRY. Behind
a gateway that signs by itself CLAUDE_CODE_SKIP_BEDROCK_AUTH and CLAUDE_CODE_SKIP_VERTEX_AUTH send no credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from attrs import frozen

from agent_core.errors import MissingCredentials
from agent_core.model.aliases import ALIASES
from agent_core.settings import env_flag

PROVIDERS = ("anthropic", "bedrock", "vertex", "foundry")
_NO_SECRET = "none"


@frozen
class Credentials:
    """Where requests go and who pays. Never logged; `repr` shows no secrets. `skip_auth`: a gateway signs."""

    api_key: str | None
    auth_token: str | None
    base_url: str | None
    provider: str = "anthropic"
    region: str | None = None
    project: str | None = None
    skip_auth: bool = False

    def __repr__(self) -> str:
        return f"Credentials(provider={self.provider!r}, base_url={self.base_url!r})"

    @property
    def endpoint(self) -> str:
        defaults = {
            "anthropic": "https://api.anthropic.com",
            "bedrock": f"https://bedrock-mantle.{self.region}.api.aws",
            "vertex": f"https://{'' if self.region == 'global' else f'{self.region}-'}aiplatform.googleapis.com",
        }
        return self.base_url or defaults[self.provider]

    @property
    def described(self) -> str:
        """For people: who is asked and what for, without a secret."""
        if self.skip_auth:
            return f"{self.provider}: a gateway adds the credentials"
        kinds = {"API key": self.api_key, "token": self.auth_token}
        kind = next((name for name, value in kinds.items() if value), "the cloud's own credentials")
        return f"{self.provider}: {kind}"

    def model_id(self, model: str) -> str:
        """As this provider spells it. Full ids, which people have written themselves, stay as they are."""
        return f"anthropic.{model}" if self.provider == "bedrock" and model in ALIASES.values() else model


def credentials(
    env: Mapping[str, str], *, api_key: str | None, base_url: str | None, provider: str = "environment"
) -> Credentials:
    """The client's key wins over the environment, which may name the provider. MissingCredentials says what to set."""
    match _chosen(env) if provider == "environment" else provider:
        case "bedrock":
            return _bedrock(env, base_url)
        case "vertex":
            return _vertex(env, base_url)
        case "foundry":
            return _foundry(env, base_url)
        case _:
            return _anthropic(env, api_key, base_url)


def open_client(found: Credentials, http_client: Any) -> Any:
    """The SDK's client for it, without retries of its own."""
    import anthropic

    own: dict[str, Any] = {"http_client": http_client, "max_retries": 0, "base_url": found.base_url}
    match found.provider:
        case "bedrock":
            return anthropic.AsyncAnthropicBedrockMantle(
                api_key=found.api_key, aws_region=found.region, skip_auth=found.skip_auth, **own
            )
        case "vertex":
            assert found.region and found.project
            return anthropic.AsyncAnthropicVertex(
                region=found.region,
                project_id=found.project,
                access_token=_NO_SECRET if found.skip_auth else None,
                **own,
            )
        case "foundry":
            return anthropic.AsyncAnthropicFoundry(api_key=found.api_key, **own)
        case _:
            return anthropic.AsyncAnthropic(api_key=found.api_key, auth_token=found.auth_token, **own)


def _chosen(env: Mapping[str, str]) -> str:
    return next((name for name in PROVIDERS[1:] if env_flag(env, f"CLAUDE_CODE_USE_{name.upper()}")), PROVIDERS[0])


def _anthropic(env: Mapping[str, str], api_key: str | None, base_url: str | None) -> Credentials:
    found = Credentials(
        api_key or env.get("ANTHROPIC_API_KEY") or None,
        None if api_key else env.get("ANTHROPIC_AUTH_TOKEN") or None,
        base_url or env.get("ANTHROPIC_BASE_URL") or None,
    )
    if not (found.api_key or found.auth_token):
        raise MissingCredentials(
            "no credentials for the model service: set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN) in the environment "
            "of the editor, or let the editor pass initializationOptions.apiKey"
        )
    return found


def _bedrock(env: Mapping[str, str], base_url: str | None) -> Credentials:
    key, skip = env.get("AWS_BEARER_TOKEN_BEDROCK") or None, env_flag(env, "CLAUDE_CODE_SKIP_BEDROCK_AUTH")
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")
    where = base_url or env.get("ANTHROPIC_BEDROCK_BASE_URL") or None
    if not region and not where:
        raise MissingCredentials("bedrock: no region; set AWS_REGION in the environment of the editor")
    if not key and not skip and find_spec("boto3") is None:
        raise MissingCredentials(
            "bedrock: no credentials; set AWS_BEARER_TOKEN_BEDROCK in the environment of the editor, or install "
            "anthropic[bedrock] beside agent-ls to use AWS profiles and roles"
        )
    return Credentials(key, None, where, "bedrock", region=region or None, skip_auth=skip)


def _vertex(env: Mapping[str, str], base_url: str | None) -> Credentials:
    skip = env_flag(env, "CLAUDE_CODE_SKIP_VERTEX_AUTH")
    region, project = env.get("CLOUD_ML_REGION"), env.get("ANTHROPIC_VERTEX_PROJECT_ID")
    unset = [name for name in ("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID") if not env.get(name)]
    if unset:
        raise MissingCredentials(f"vertex: set {' and '.join(unset)} in the environment of the editor")
    if not skip and find_spec("google") is None:
        raise MissingCredentials("vertex: install anthropic[vertex] beside agent-ls to use Google credentials")
    where = base_url or env.get("ANTHROPIC_VERTEX_BASE_URL") or None
    return Credentials(None, None, where, "vertex", region=region, project=project, skip_auth=skip)


def _foundry(env: Mapping[str, str], base_url: str | None) -> Credentials:
    key, resource = env.get("ANTHROPIC_FOUNDRY_API_KEY") or None, env.get("ANTHROPIC_FOUNDRY_RESOURCE")
    where = base_url or env.get("ANTHROPIC_FOUNDRY_BASE_URL") or None
    if not where and resource:
        where = f"https://{resource}.services.ai.azure.com/anthropic/"
    if not key or not where:
        missing = "ANTHROPIC_FOUNDRY_API_KEY" if not key else "ANTHROPIC_FOUNDRY_RESOURCE"
        raise MissingCredentials(f"foundry: set {missing} in the environment of the editor")
    return Credentials(key, None, where, "foundry")
