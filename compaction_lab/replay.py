"""The loop: one conversation through one arm, recorded (answers are kept) or live (a model answers, tools run)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compaction_lab.arm import ArmRun, Occurring, Slot, occasions
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Message, Text, user
from compaction_lab.conversation.tokens import TokenCounter
from compaction_lab.conversation.tokens import tokenizer as find_tokenizer
from compaction_lab.conversation.transcript import Probe, Transcript
from compaction_lab.errors import ContextOverflow, ModelError, SummarizerMissing
from compaction_lab.models.base import Model, ModelReply, ModelRequest
from compaction_lab.quality.calibrated import CalibratedReader
from compaction_lab.quality.evidence import locate
from compaction_lab.quality.findings import ValidityWatch
from compaction_lab.quality.judges import Judge, subspan
from compaction_lab.quality.llm_judge import ModelJudge
from compaction_lab.quality.references import ReferenceRules, ReferenceWatch, found_references
from compaction_lab.recording import Accounts, Recorder
from compaction_lab.records import Cell, Row, UnitResult
from compaction_lab.scenarios.base import LiveTool, Scenario
from compaction_lab.strategies.base import Occasion

if TYPE_CHECKING:
    from compaction_lab.strategies.registry import PlacedStrategy
    from compaction_lab.sweep.loading import Run

MAX_STEPS_PER_TURN = 12
"""Model calls after which a live turn is given up, so that a model that only calls tools cannot run for ever."""


OVERFLOW = "overflow"
"""``finish`` of a reply that stands for a prompt too long for the model."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays which part in a unit.

    Parameters
    ----------
    slots
        The arm's strategies in order.
    summarizer
        Answers the strategies' requests; ``None`` makes a request an error.
    reader
        Answers probes, tools off; ``None`` leaves probes unasked.
    judge, judge_name
        Scores the reader's answers.
    seed
        Passed to every model.
    references
        Which values of a recorded conversation count as references; ``None`` leaves them unjudged.
    """

    slots: tuple[Slot, ...]
    summarizer: Model | None = None
    reader: Model | CalibratedReader | None = None
    judge: Judge | ModelJudge = subspan
    judge_name: str = "subspan"
    summaries_block: bool = True
    window_tokens: int | None = None
    seed: int = 0
    references: ReferenceRules | None = None


@dataclass(slots=True)
class _Unit:
    """One unit under way: the log, the arm's state, and the recorder that writes what happens."""

    log: Log
    cast: Cast
    recorder: Recorder
    arm: ArmRun = field(init=False)
    validity: ValidityWatch = field(init=False)
    overflowed: bool = field(init=False, default=False)
    """Whether the last occasion was an overflow, which reaches the strategies once a call."""

    def __post_init__(self) -> None:
        """Set up the arm."""
        self.validity = ValidityWatch(self.log)
        self.arm = ArmRun(self.log, self.cast.slots, self.recorder.tools, self.cast.window_tokens)

    def occur(self, occasion: Occasion, stop: int, turn: int, now_s: float | None = None) -> Context:
        """Let the strategies act, answering and recording what they ask of the summarizer."""
        before_call = occasion != "after_turn"
        occurring = self.arm.occasion(occasion, stop, now_s=now_s)
        self.overflowed = occasion == "overflow"
        context = _answered(occurring, lambda request: self._summarize(request, turn, before_call=before_call))
        self.recorder.firings(turn, stop, self.arm, before_call=before_call)
        self.validity.saw(self.arm.firings)
        return context

    def before_call(self, stop: int, turn: int, now_s: float | None = None) -> Context:
        """Return what a call is sent; what overflows the window goes once through every strategy of the arm."""
        sent = self.occur("before_call", stop, turn, now_s)
        if not self._overflows(sent):
            return sent
        sent = self.occur("overflow", stop, turn, now_s)
        if self._overflows(sent):
            self.recorder.result.outcome = "overflow"
        return sent

    def _overflows(self, sent: Context) -> bool:
        window, recorder = self.cast.window_tokens, self.recorder
        return window is not None and sent.tokens(recorder.accounts.counter) + recorder.overhead_tokens > window

    def _summarize(self, request: ModelRequest, turn: int, *, before_call: bool) -> ModelReply:
        summarizer, reply = _summary(self.cast, request)
        self.recorder.request(
            turn, request, reply, model=summarizer.name, simulated=summarizer.simulated, before_call=before_call
        )
        return reply

    def ask(self, probe: Probe, stop: int, turn: int) -> None:
        """Ask one probe, tools off, on a fork that leaves no trace in the arm."""
        reader = self.cast.reader
        if reader is None:
            return
        fork = self.log.prefix(stop)
        fork.append(user(probe.question))
        arm = self.arm.fork(fork)
        for occasion in ("before_turn", "before_call"):
            occurring = arm.occasion(occasion, stop + 1)
            context = _answered(occurring, lambda request: _summary(self.cast, request)[1])
        counter = self.recorder.accounts.counter
        if isinstance(reader, CalibratedReader):
            expected = reader.judged(probe, context, counter)
            self.recorder.result.probes.append({"turn": turn, "probe": probe.id, "kind": probe.kind, **expected})
            return
        sent = context.messages
        request = ModelRequest(sent, "probe", (), seed=self.cast.seed)
        reply = answered(reader, request)
        if reply.error and reply.finish != OVERFLOW:
            raise ModelError(f"reader {reader.name}: {reply.error}")
        self.recorder.request(turn, request, reply, model=reader.name, simulated=reader.simulated, before_call=False)
        if reply.error:
            self.recorder.result.outcome = "overflow"
        self.recorder.result.probes.append(
            {
                "turn": turn,
                "probe": probe.id,
                "kind": probe.kind,
                **locate(probe, sent[:-1], self.log, stop, counter),
                "answer": None if reply.error else reply.text,
                "gold": list(probe.gold),
                **self._judged(probe, reply, turn),
                "judge": self.cast.judge_name,
                "reader": reader.name,
                **({"stale": bool(subspan(reply.text, probe.stale))} if probe.stale else {}),
            }
        )

    def _judged(self, probe: Probe, reply: ModelReply, turn: int) -> Row:
        """Return the score of an answer, and the raw verdicts when a model judged; what it was asked is recorded."""
        judge = self.cast.judge
        if reply.error:
            return {"score": None}
        if not isinstance(judge, ModelJudge):
            return {"score": judge(reply.text, probe.gold, probe.question)}
        judgment = judge(probe.question, probe.gold, reply.text, seed=self.cast.seed)
        for request, verdict in judgment.asked:
            model = judge.model
            self.recorder.request(
                turn, request, verdict, model=model.name, simulated=model.simulated, before_call=False
            )
        return {"score": judgment.score, "verdicts": judgment.rows()}


def replay_recorded(transcript: Transcript, cast: Cast, accounts: Accounts, model: str = "recorded") -> UnitResult:
    """Send a recorded conversation through an arm: what would have been sent, and what it would have cost.

    Parameters
    ----------
    transcript
        The conversation; its assistant messages are kept as they are.
    cast, accounts
        The arm with its summarizer and reader, and how calls are counted and priced.
    model
        Name of the model whose calls these are.
    """
    log = transcript.log
    recorder = Recorder(accounts, transcript.tools, summaries_block=cast.summaries_block)
    unit = _Unit(log, cast, recorder)
    watch = None
    if cast.references is not None:
        counter = accounts.counter
        watch = ReferenceWatch(found_references(transcript, counter, cast.references), log, counter)
    probes = sorted(transcript.probes, key=lambda probe: _asked_at(probe, log))
    asked = 0
    for occasion, stop, turn in occasions(log):
        while asked < len(probes) and _asked_at(probes[asked], log) < stop:
            unit.ask(probes[asked], _asked_at(probes[asked], log), log.turn_at(_asked_at(probes[asked], log)))
            asked += 1
        now_s = _time_of(log.messages, stop)
        if occasion != "before_call":
            unit.occur(occasion, stop, turn, now_s)
            continue
        sent = unit.before_call(stop, turn, now_s)
        answer = tuple(_answer(log.messages, stop))
        findings = unit.validity.at_call(sent)
        recorder.agent_call(
            turn, stop, unit.arm, sent, answer, model=model, simulated=False, now_s=now_s, findings=findings
        )
        if watch is not None:
            recorder.result.probes.extend(watch.rows(stop, turn, recorder.call, sent))
    for probe in probes[asked:]:
        stop = _asked_at(probe, log)
        unit.ask(probe, stop, log.turn_at(stop))
    recorder.log(log.messages)
    return recorder.result


def run_live(scenario: Scenario, model: Model, cast: Cast, accounts: Accounts) -> UnitResult:
    """Let a model live through a scenario: the user's turns are fixed, the model answers, tools really run.

    Raises
    ------
    ModelError
        The model failed.

    Notes
    -----
    A turn of ``MAX_STEPS_PER_TURN`` calls is ended there, and its last call's ``error`` says so. When the provider says
    that a context does not fit, the strategies get the occasion ``overflow`` once; when it still does not fit, the unit
    ends there with the outcome ``overflow`` and the rows it has.
    """
    log = Log(scenario.opening)
    definitions = tuple(tool.definition for tool in scenario.tools)
    tools = {tool.definition.name: tool for tool in scenario.tools}
    recorder = Recorder(accounts, definitions, summaries_block=cast.summaries_block)
    unit = _Unit(log, cast, recorder)
    for number, turn in enumerate(scenario.turns, start=1):
        log.append(user(turn.user))
        unit.occur("before_turn", len(log), number)
        answer = _live_turn(unit, model, tools, number)
        if answer is None:
            break
        if turn.judge is not None:
            judged = turn.judge(answer)
            recorder.result.probes.append(
                {
                    "turn": number,
                    "probe": f"turn-{number}",
                    "kind": "rubric",
                    "position": None,
                    "age_turns": None,
                    "age_tokens": None,
                    "evidence_visible": None,
                    "answer": answer,
                    "gold": [
                        *(f"missing: {fact}" for fact in judged.missing),
                        *(f"wrong: {fact}" for fact in judged.wrong),
                        *(f"invented: {fact}" for fact in judged.invented),
                    ],
                    "score": judged.score,
                    "judge": "rubric",
                    "reader": model.name,
                }
            )
        unit.occur("after_turn", len(log), number)
        for probe in scenario.probes.get(number, ()):
            unit.ask(probe, len(log), number)
    recorder.log(log.messages)
    return recorder.result


def _live_turn(unit: _Unit, model: Model, tools: dict[str, LiveTool], number: int) -> str | None:
    """Call the model until it answers without calling a tool; return the texts of this turn, ``None`` on overflow."""
    log, recorder = unit.log, unit.recorder
    said = []
    for _ in range(MAX_STEPS_PER_TURN):
        stop = len(log)
        sent = unit.before_call(stop, number)
        reply = answered(model, ModelRequest(sent.messages, "agent", recorder.tools, seed=unit.cast.seed))
        if reply.finish == OVERFLOW and not unit.overflowed:
            sent = unit.occur("overflow", stop, number)
            reply = answered(model, ModelRequest(sent.messages, "agent", recorder.tools, seed=unit.cast.seed))
        if reply.error and reply.finish != OVERFLOW:
            raise ModelError(f"turn {number}: model {model.name}: {reply.error}")
        message = Message(
            "assistant", (Text(reply.text),) if reply.text else (), reply.calls, source="generated", usage=reply.usage
        )
        recorder.agent_call(
            number,
            stop,
            unit.arm,
            sent,
            (message,),
            model=model.name,
            simulated=model.simulated,
            reply=reply,
            findings=unit.validity.at_call(sent),
        )
        if reply.error:
            recorder.result.outcome = "overflow"
            return None
        log.append(message)
        said.append(reply.text)
        if not reply.calls:
            return "\n".join(filter(None, said))
        for call in reply.calls:
            text, failed = _run_tool(tools.get(call.name), call.arguments)
            result = Message(
                "tool", (Text(text),), call_id=call.id, name=call.name, is_error=failed, source="generated"
            )
            log.append(result)
    recorder.result.calls[-1]["error"] = f"the turn was ended after {MAX_STEPS_PER_TURN} calls"
    return "\n".join(filter(None, said))


def answered(model: Model, request: ModelRequest) -> ModelReply:
    """Ask a model; a prompt that does not fit its window is a reply too: the strategy's result, not a failure."""
    try:
        return model(request)
    except ContextOverflow as error:
        return ModelReply(finish=OVERFLOW, error=str(error))


def _run_tool(tool: LiveTool | None, arguments: str) -> tuple[str, bool]:
    """Run a tool as an agent's loop does: whatever the model got wrong comes back to it as an error result."""
    if tool is None:
        return "error: there is no such tool", True
    try:
        values = json.loads(arguments or "{}")
    except ValueError:
        values = None
    if not isinstance(values, dict):
        return "error: the arguments are not a JSON object", True
    return tool.run(values), False


def _answered(occurring: Occurring, answer: Callable[[ModelRequest], ModelReply]) -> Context:
    """Run an occasion to its end, answering what strategies ask."""
    try:
        requests = next(occurring)
        while True:
            requests = occurring.send(tuple(map(answer, requests)))
    except StopIteration as end:
        context: Context = end.value
        return context


def _summary(cast: Cast, request: ModelRequest) -> tuple[Model, ModelReply]:
    if cast.summarizer is None:
        msg = "the strategy asks for a summary and no summarizer was given; give summarizer=stub, a model or a callable"
        raise SummarizerMissing(msg)
    return cast.summarizer, answered(cast.summarizer, dataclasses.replace(request, seed=cast.seed))


def _answer(messages: Sequence[Message], stop: int) -> Iterator[Message]:
    """Yield the recorded answer to the call at ``stop``: its assistant message and those of the same response.

    Results may stand between them, as when a recorder writes down each tool call with its result.
    """
    for at in range(stop, len(messages)):
        message = messages[at]
        same = at == stop or (message.response_id and message.response_id == messages[stop].response_id)
        if message.role == "assistant" and same:
            yield message
        elif message.role != "tool":
            return


def _asked_at(probe: Probe, log: Log) -> int:
    return len(log) if probe.after_message is None else min(probe.after_message, len(log))


def _time_of(messages: Sequence[Message], stop: int) -> float | None:
    """Return the latest recorded time before a call, in seconds since the epoch."""
    for at in range(min(stop, len(messages) - 1), max(stop - 8, -1), -1):
        if messages[at].timestamp_s is not None:
            return messages[at].timestamp_s
    return None


def replay(
    transcript: Transcript,
    s: PlacedStrategy,
    tokenizer: str = "o200k_base",
    *,
    priced_as: str | None = None,
    cache_policy: str = "openai",
    summarizer: Model | None = None,
    reader: Model | None = None,
) -> Run:
    """Replay one transcript through one strategy, beside the uncompacted baseline; nothing is written to disk.

    Parameters
    ----------
    transcript
        From :func:`compaction_lab.load_transcripts`.
    s
        From :func:`compaction_lab.strategy`.
    tokenizer
        Counting rule of the tables, and of the strategy unless it has its own.
    priced_as
        Name of the model to price the calls as, at today's prices; without it costs are missing.
    cache_policy
        Which provider's prompt cache is simulated; ``none`` for none.
    summarizer, reader
        Who writes summaries and answers probes; the deterministic stubs when not given.

    Returns
    -------
    Run
        Two arms, ``none`` and the strategy under the label a sweep would give it, with the tables that
        :func:`compaction_lab.load_run` gives.
    """
    from compaction_lab.accounting import cache_policy as caching
    from compaction_lab.accounting.prices import price_model
    from compaction_lab.configuration import configuration_files
    from compaction_lab.models.registry import build_model
    from compaction_lab.strategies.registry import preset, strategy
    from compaction_lab.sweep.cells import option_label
    from compaction_lab.sweep.loading import Run

    counter = TokenCounter(find_tokenizer(tokenizer))
    price = None if priced_as is None else price_model(priced_as)
    summarizer = summarizer or build_model({"kind": "stub"}, role="summarizer")
    reader = reader or build_model({"kind": "stub"}, role="reader")
    policy = caching.cache_policy(configuration_files().read("cache_policy", cache_policy), priced_as or "")
    given: dict[str, JSON] = {"preset": s.name, **s.parameters}
    arms = {"none": strategy("none"), option_label("strategy", given, preset(s.name), main=True): s}
    cells, results = [], {}
    for label, placed in arms.items():
        rule = counter if placed.tokenizer is None else counting_rule(placed.tokenizer)
        overhead = rule.tools(transcript.tools) + rule.request_overhead
        slot = Slot(placed.run, placed.when, placed.history, rule, overhead)
        accounts = Accounts(counter, price, policy, recorded_bill=label == "none")
        config: dict[str, JSON] = {"strategy": {"preset": placed.name, **placed.parameters}, "baseline_arm": "none"}
        cell = Cell(label, label, "recorded", transcript.id, 0, config)
        cells.append(cell)
        cast = Cast((slot,), summarizer, reader, references=ReferenceRules())
        results[label, transcript.id, 0] = replay_recorded(transcript, cast, accounts)
    return Run.from_results(cells, results)
