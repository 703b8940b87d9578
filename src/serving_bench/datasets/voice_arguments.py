"""Arguments of the voice-agent generator."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from serving_bench.datasets import phrases


class VoiceAgentArguments(BaseModel):
    """Arguments of the generator, as the dataset lock records them; what has no default of its own is off."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 1
    agents: int = Field(default=3, ge=1, le=len(phrases.AGENTS))
    rooms: int = Field(default=48, ge=1, le=100_000)
    warmup_rooms: int = Field(default=5, ge=0, le=1_000)
    """One more than the warm-up plays: aiperf draws a conversation ahead at the
    end of each phase and drops it, so that without the spare one the load
    would miss its first conversation and come round to a warm-up one."""
    min_turns: int = Field(default=3, ge=1, le=200)
    max_turns: int = Field(default=8, ge=1, le=200)
    prompt_rules: int = Field(default=48, ge=1, le=2_000)
    """Rules in an agent's system prompt; one rule is about 20 words."""
    max_prompt_rules: int | None = Field(default=None, ge=1, le=2_000)
    """Where given, each agent has between ``prompt_rules`` and this many."""
    tools: int = Field(default=0, ge=0, le=len(phrases.TOOLS))
    """Tools that an agent's system prompt describes."""
    tool_share: float = Field(default=0.0, ge=0, le=1)
    """Share of the caller's turns that the agent answers with a call of a tool, whose result is the next turn."""
    min_call_tokens: int = Field(default=12, ge=1)
    max_call_tokens: int = Field(default=28, ge=1)
    """Length of an answer that is the call of a tool."""
    min_tool_ms: int = Field(default=0, ge=0)
    max_tool_ms: int = Field(default=0, ge=0)
    """Time that a tool takes."""
    min_pause_ms: int = Field(default=0, ge=0)
    max_pause_ms: int = Field(default=0, ge=0)
    """Time from an answer to the caller's next turn; 0: the next turn is sent at once."""
    record_notes: int = Field(default=60, ge=0, le=2_000)
    """Notes about the caller in the first message of a room; one is about 10 words."""
    handover_every: int = Field(default=6, ge=0)
    """Every n-th room is handed over to a second agent, but for the last ``handover_lag``; 0: none is."""
    handover_notes: int = Field(default=0, ge=0, le=2_000)
    """Notes about the caller that go with a hand-over."""
    handover_lag: int = Field(default=12, ge=1)
    """Conversations between the two of a handed-over room in the file, so that
    a replay at a concurrency up to this starts the second after the first."""
    long_every: int = Field(default=0, ge=0)
    """Every n-th room is a long one; 0: none is."""
    min_long_turns: int = Field(default=30, ge=1, le=1_000)
    max_long_turns: int = Field(default=60, ge=1, le=1_000)
    warmup_each_agent: bool = False
    """The warm-up rooms go round all agents, with one turn each, and change nothing of the other rooms."""
    min_output_tokens: int = Field(default=16, ge=1)
    max_output_tokens: int = Field(default=48, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> VoiceAgentArguments:
        for name in ("turns", "output_tokens", "call_tokens", "tool_ms", "pause_ms", "long_turns"):
            if getattr(self, f"min_{name}") > getattr(self, f"max_{name}"):
                raise ValueError(f"min_{name} is greater than max_{name}")
        if self.max_prompt_rules is not None and self.prompt_rules > self.max_prompt_rules:
            raise ValueError("prompt_rules is greater than max_prompt_rules")
        return self
