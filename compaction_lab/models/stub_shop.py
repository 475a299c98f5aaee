"""The shop assistant: a deterministic stand-in for a model that answers only from the messages it is given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from compaction_lab.conversation.messages import Message, ToolCall
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.shop_answers import compose, named_size, ranked
from compaction_lab.models.shop_knowledge import Attention, Knowledge, gather, unit_draw
from compaction_lab.models.shop_questions import Question, understand

ANSWER_TOKENS = 215
"""Mean answer length in tokens: LMSYS-Chat-1M reports 214.5 tokens per response over a million conversations (Zheng et
al., ICLR 2024, table 1, counted with the Llama 2 tokenizer; the same table has 214.2 for OpenAssistant)."""

LIST_TOOL, DETAILS_TOOL = "get_products", "get_product_details"


@dataclass(frozen=True, slots=True)
class ShopStub:
    """Answer as a shop assistant that looks things up when it does not see enough, and never otherwise.

    It understands a question by scripted wordings and takes every value from the visible messages. What it sees is
    *sufficient* by one rule that knows nothing of the right answer:

    - attributes asked for by name: each is visible for each product named;
    - anything else about a product (its specification, who it is for, how it compares): ``enough_facts`` of its
      attributes are visible, wherever they stand and even if more would be asked for; who it is or is not for also
      needs one statement of that sort;
    - the whole catalog, names, a screen limit or a recommendation: ``enough_products`` products are visible; a
      recommendation also needs the leading candidates to be known in that sense;
    - a recap of the conversation never calls tools.

    When it is not sufficient it calls the tools it is offered, several at once, none twice in one turn, and then
    answers from what it sees, saying what it does not know. So a summary that kept half of the facts is answered from,
    by half.

    Parameters
    ----------
    answer_tokens
        Mean length aimed at, in tokens; single answers vary by 30 % either way, drawn from the question's text. Asked
        for brevity it aims at half of that; probes and bare lists of names are not elaborated.
    enough_facts, enough_products
        The thresholds above.
    attention
        Position-dependent reading; off by default.
    count
        Counts tokens; ``None`` is the o200k_base encoding.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import user
    >>> ShopStub(count=len)(ModelRequest((user("How much does the DevBook 15 weigh?"),), purpose="probe")).text
    'I do not know anything about the DevBook 15: I see no product data on it.'
    """

    answer_tokens: int = ANSWER_TOKENS
    enough_facts: int = 4
    enough_products: int = 3
    attention: Attention = field(default_factory=Attention)
    count: Callable[[str], int] | None = None
    name: str = "stub_shop"
    simulated: bool = True

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Answer one request, or call tools."""
        asked = _last_question(request.messages)
        if asked is None:
            return ModelReply()
        messages = [m for i, m in enumerate(request.messages) if i != asked]
        knowledge = gather(messages, self.attention, request.seed)
        question = understand(request.messages[asked].text, tuple(knowledge.products))
        calls = self._calls(question, knowledge, request, asked)
        if calls:
            return ModelReply(calls=calls, finish="tool_calls")
        text = compose(
            question,
            knowledge,
            target_tokens=self._target(question, request),
            limit_tokens=request.max_output_tokens,
            count=self.count or _o200k(),
            seed=request.seed,
        )
        return ModelReply(text=text)

    def _target(self, question: Question, request: ModelRequest) -> float:
        if request.purpose == "probe" or question.kind == "names":
            return 0.0
        share = 0.7 + 0.6 * unit_draw(request.seed, "length", question.text)
        return self.answer_tokens * share * (0.5 if question.brief and question.kind == "product" else 1.0)

    def _calls(
        self, question: Question, knowledge: Knowledge, request: ModelRequest, asked: int
    ) -> tuple[ToolCall, ...]:
        offered = {tool.name for tool in request.tools}
        wanted = [call for call in self._wanted(question, knowledge) if call[0] in offered]
        made = {
            (call.name, _squeezed(call.arguments)) for message in request.messages[asked:] for call in message.calls
        }
        taken = {call.id for message in request.messages for call in message.calls}
        calls: list[ToolCall] = []
        for name, arguments in wanted:
            text = json.dumps(arguments, ensure_ascii=False)
            if (name, _squeezed(text)) in made:
                continue
            made.add((name, _squeezed(text)))
            identity = _call_id(question.text, name, text, taken)
            taken.add(identity)
            calls.append(ToolCall(identity, name, text))
        return tuple(calls)

    def _wanted(self, question: Question, knowledge: Knowledge) -> list[tuple[str, dict[str, str]]]:
        whole = [(LIST_TOOL, dict[str, str]())] if len(knowledge.products) < self.enough_products else []
        match question.kind:
            case "product":
                names = [n for n in question.products if not self._sufficient(question, knowledge, n)]
            case "list" | "names":
                return whole
            case "below":
                names = [
                    name
                    for name, seen in knowledge.products.items()
                    if "display_in" not in seen.values and named_size(name) < question.limit_in
                ]
            case "recommend":
                leading = ranked(knowledge, question.uses)[: max(2, question.how_many)]
                names = [n for n in leading if not self._known(knowledge, n)]
                if not leading and knowledge.products and not whole:
                    whole = [(LIST_TOOL, {})]
            case _:
                return []
        if question.kind != "product" and whole:
            return whole
        return [(DETAILS_TOOL, {"name": name}) for name in names]

    def _sufficient(self, question: Question, knowledge: Knowledge, name: str) -> bool:
        seen = knowledge.about(name)
        attributes = [a for a in question.attributes if a != "refresh_hz"]
        if not all(attribute in seen.values for attribute in attributes):
            return False
        open_wishes = question.aspects - {"lighter"}
        if open_wishes & {"suits", "limits"} and not (seen.suits or seen.limits):
            return False
        return not open_wishes or self._known(knowledge, name)

    def _known(self, knowledge: Knowledge, name: str) -> bool:
        return len(knowledge.about(name).values) >= self.enough_facts


def _last_question(messages: Sequence[Message]) -> int | None:
    return next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user"), None)


def _squeezed(arguments: str) -> str:
    return "".join(arguments.split()).casefold()


def _call_id(question: str, name: str, arguments: str, taken: set[str]) -> str:
    attempt = 0
    while True:
        parts = f"{question}\x1f{name}\x1f{arguments}\x1f{attempt}".encode("utf-8", "surrogatepass")
        identity = f"call_{hashlib.sha256(parts).hexdigest()[:12]}"
        if identity not in taken:
            return identity
        attempt += 1


def _o200k() -> Callable[[str], int]:
    from compaction_lab.conversation.tokens import tokenizer

    return tokenizer("o200k_base").count
