"""The prompt cache simulation: each documented rule, two properties, and its numbers through the real SDK."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.demo.body import render
from lsp_server.demo.cache import CacheUsage, PromptCache, minimum_for
from lsp_server.demo.script import Script, conversation, say

MODEL = "claude-sonnet-5"
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
EMPTY = len('{"type":"text","text":""}')


def block(tokens, mark=None, letter="x"):
    """A text block of so many tokens."""
    text = {"type": "text", "text": letter * (tokens * 4 - EMPTY)}
    return {**text, "cache_control": mark} if mark else text


def body(*blocks, model=MODEL, **more):
    return {"model": model, "messages": [{"role": "user", "content": list(blocks)}], **more}


def run(cache, request, now=0.0):
    lookup = cache.look_up(request, now)
    lookup.begin()
    return lookup.usage


def usage(input_tokens=0, read=0, written_5m=0, written_1h=0):
    return CacheUsage(input_tokens, read, written_5m, written_1h)


def test_writes_at_a_breakpoint_and_reads_it_again():
    cache = PromptCache(minimum=0)
    request = body(block(10), block(20, MARK), block(8))
    assert [run(cache, request) for _ in range(2)] == [usage(8, 0, 30), usage(8, 30)]


def test_no_breakpoint_no_cache():
    cache = PromptCache(minimum=0)
    assert [run(cache, body(block(10))) for _ in range(2)] == [usage(10)] * 2


def test_a_growing_conversation_pays_only_for_what_is_new():
    cache = PromptCache(minimum=0)
    run(cache, body(block(10), block(20, MARK)))
    assert run(cache, body(block(10), block(20), block(7, MARK))) == usage(0, 30, 7)


def test_the_order_is_tools_system_messages_and_each_part_keeps_what_is_before_it():
    cache = PromptCache(minimum=0)
    tool = {"name": "Read", "description": "d" * 60, "input_schema": {"type": "object"}, "cache_control": MARK}
    size = render(body(tools=[tool])).size // 4
    run(cache, body(block(10, MARK), tools=[tool], system=[block(20, MARK)]))
    other_message = body(block(10, MARK, "y"), tools=[tool], system=[block(20, MARK)])
    other_system = body(block(10, MARK), tools=[tool], system=[block(20, MARK, "y")])
    other_tool = body(block(10, MARK), tools=[{**tool, "description": "e" * 60}], system=[block(20, MARK)])
    reads = [run(cache, request).read for request in (other_message, other_system, other_tool)]
    assert reads == [size + 20, size, 0]


@pytest.mark.parametrize(("added", "read"), [(19, 10), (20, 0)])
def test_a_read_looks_back_twenty_positions(added, read):
    cache = PromptCache(minimum=0)
    run(cache, body(block(10, MARK)))
    more = [block(10) for _ in range(added - 1)]
    assert run(cache, body(block(10), *more, block(10, MARK))).read == read


def test_an_extra_breakpoint_saves_a_long_turn():
    cache = PromptCache(minimum=0)
    run(cache, body(block(10, MARK)))
    more = [block(10, MARK if i == 10 else None) for i in range(24)]
    assert run(cache, body(block(10), *more, block(10, MARK))).read == 10


def test_the_model_is_part_of_the_key():
    cache = PromptCache(minimum=0)
    run(cache, body(block(10, MARK)))
    assert run(cache, body(block(10, MARK), model="claude-opus-5")) == usage(0, 0, 10)


@pytest.mark.parametrize(
    "change",
    [{"tool_choice": {"type": "any"}}, {"thinking": {"type": "adaptive"}}, {"output_config": {"effort": "low"}}],
    ids=lambda change: next(iter(change)),
)
def test_what_counts_for_the_messages_leaves_the_system_cached(change):
    cache = PromptCache(minimum=0)
    request = body(block(10, MARK), system=[block(20, MARK)])
    run(cache, request)
    assert run(cache, {**request, **change}) == usage(0, 20, 10)


def test_an_image_anywhere_counts_for_all_messages_and_speed_for_the_system_too():
    cache = PromptCache(minimum=0)
    request = body(block(10, MARK), system=[block(20, MARK)])
    run(cache, request)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    assert run(cache, body(block(10, MARK), image, system=[block(20, MARK)])).read == 20
    assert run(cache, {**request, "speed": "fast"}).read == 0


def test_five_minutes_from_the_last_use_and_an_hour_for_the_longer():
    cache = PromptCache(minimum=0)
    short, long = body(block(10, MARK)), body(block(10, HOUR, "y"))
    assert (run(cache, short), run(cache, long)) == (usage(0, 0, 10), usage(0, 0, 0, 10))
    assert [run(cache, short, now).read for now in (299, 598, 899)] == [10, 10, 0]
    assert [run(cache, long, now).read for now in (3599, 7198, 10799)] == [10, 10, 0]


def test_a_hit_keeps_the_breakpoints_before_it_alive():
    cache = PromptCache(minimum=0)
    request = body(block(10, MARK), system=[block(20, MARK)])
    run(cache, request)
    run(cache, request, 200)
    assert run(cache, body(block(10, None, "y"), system=[block(20, MARK)]), 400).read == 20


def test_both_lives_in_one_request_are_told_apart():
    cache = PromptCache(minimum=0)
    request = body(block(10), block(7, MARK), system=[block(20, HOUR)])
    assert run(cache, request) == usage(0, 0, 17, 20)
    assert run(cache, request, 400) == usage(0, 20, 17, 0)


def test_below_the_minimum_nothing_is_cached():
    cache = PromptCache()
    assert [run(cache, body(block(1023, MARK))) for _ in range(2)] == [usage(1023)] * 2
    assert [run(cache, body(block(1024, MARK))) for _ in range(2)] == [usage(0, 0, 1024), usage(0, 1024)]


def test_minimum_by_model():
    tokens = {
        "claude-opus-5": 512,
        "claude-fable-5-2": 512,
        "claude-mythos-5": 512,
        "claude-opus-4-8": 1024,
        "claude-sonnet-5": 1024,
        "claude-sonnet-4-5": 1024,
        "claude-opus-4-7": 2048,
        "claude-3-5-haiku-20241022": 2048,
        "claude-opus-4-6": 4096,
        "claude-opus-4-5": 4096,
        "claude-haiku-4-5-20251001": 4096,
    }
    assert {name: minimum_for(name) for name in tokens} == tokens


def test_an_entry_is_readable_only_once_its_answer_has_begun():
    cache = PromptCache(minimum=0)
    first, second = (cache.look_up(body(block(10, MARK)), 0) for _ in range(2))
    first.begin()
    third = cache.look_up(body(block(10, MARK)), 0)
    assert [lookup.usage for lookup in (first, second, third)] == [usage(0, 0, 10), usage(0, 0, 10), usage(0, 10)]


def test_key_order_is_part_of_the_bytes():
    cache = PromptCache(minimum=0)

    def call(values):
        use = {"type": "tool_use", "id": "t", "name": "Read", "input": values}
        done = {"type": "tool_result", "tool_use_id": "t", "content": "r", "cache_control": MARK}
        user = {"role": "user", "content": "go"}
        return [user, {"role": "assistant", "content": [use]}, {"role": "user", "content": [done]}]

    reads = [
        run(cache, {"model": MODEL, "messages": call(values)}).read > 0
        for values in ({"a": 1, "b": 2}, {"a": 1, "b": 2}, {"b": 2, "a": 1})
    ]
    assert reads == [False, True, False]


def test_who_spoke_is_part_of_the_prefix():
    cache = PromptCache(minimum=0)

    def spoken(role):
        last = {"role": "user", "content": [block(10, MARK)]}
        return {"model": MODEL, "messages": [{"role": "user", "content": "go"}, {"role": role, "content": "x"}, last]}

    reads = [run(cache, spoken(role)).read > 0 for role in ("user", "assistant", "user", "system")]
    assert reads == [False, False, True, False]


def test_automatic_caching_marks_the_last_block_that_can_be():
    cache = PromptCache(minimum=0)
    assert run(cache, body(block(10), block(8), cache_control=MARK)) == usage(0, 0, 18)
    assert run(cache, body(block(10), block(8), block(7), cache_control=MARK)) == usage(0, 18, 7)


@st.composite
def requests(draw):
    """A body whose blocks come from a small alphabet, so that prefixes meet often."""
    letters = draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=30))
    marks = draw(st.sets(st.integers(0, len(letters) - 1), max_size=4))
    blocks = [block(10, MARK if i in marks else None, letter) for i, letter in enumerate(letters)]
    cut = draw(st.integers(0, len(blocks) - 1))
    return body(*blocks[cut:], system=blocks[:cut])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(requests(), st.integers(0, 400), st.booleans()), max_size=8))
def test_reads_never_exceed_what_an_earlier_answer_wrote(steps):
    cache, now, written = PromptCache(minimum=0), 0.0, set()
    for request, pause, begins in steps:
        now += pause
        lookup = cache.look_up(request, now)
        places = render(request).positions
        shared = [p.size // 4 for p in places if p.digest in written]
        assert lookup.usage.read in (0, *shared)
        parts = lookup.usage
        assert parts.input_tokens + parts.read + parts.written_5m + parts.written_1h == places[-1].size // 4
        if begins:
            lookup.begin()
            written |= {p.digest for p in places if p.ttl}


@settings(max_examples=200, deadline=None)
@given(requests(), st.lists(st.sampled_from("ab"), min_size=1, max_size=18))
def test_a_longer_prompt_with_a_kept_prefix_reads_all_that_was_cached(request, letters):
    cache = PromptCache(minimum=0)
    first = run(cache, request)
    content = [{k: v for k, v in b.items() if k != "cache_control"} for b in request["messages"][0]["content"]]
    marked = request["messages"][0]["content"][-1].get("cache_control")
    longer = [*content, *[block(10, None, letter) for letter in letters[:-1]], block(10, MARK, letters[-1])]
    second = run(cache, {**request, "messages": [{"role": "user", "content": longer}]})
    assert second.read <= first.read + first.written_5m
    if marked:
        assert second.read == first.read + first.written_5m


@pytest.mark.anyio
async def test_numbers_reach_the_sdk_and_wait_for_the_first_answer(serve):
    turn = say("done", first_byte_ms=80)
    server, client = await serve(Script((conversation(turn, repeat_last=True),), min_cache_tokens=0))
    request = {**body(block(30, MARK), block(8)), "max_tokens": 10}

    async def ask():
        u = (await client.messages.create(**request)).usage
        return u.input_tokens, u.cache_read_input_tokens, u.cache_creation.ephemeral_5m_input_tokens

    assert await asyncio.gather(ask(), ask()) == [(8, 0, 30)] * 2
    assert await ask() == (8, 30, 0)
    server.advance(301)
    assert await ask() == (8, 0, 30)
