"""Plans of process trees, drawn from a seed: every way to be born, to hide and to live comes early and often."""

import random
from collections.abc import Iterator
from typing import Any

from process_tree import BIRTHS, LIVES, TRAITS, size

MOST_NODES = 14
"""With storms of 24 and shells of 4, a tree stays below 150 processes."""
STORMS = 3
RUNNERS = {"running", "running_apart"}
SIMPLE_LIVES = {"wait", "stopped", "watching", "talking"}
Plan = dict[str, Any]


def draw_plan(seed: int, *, leaves: bool) -> Plan:
    """The tree of one command. Where its first process leaves, the others stay; else it waits with them."""
    draw = random.Random(f"tree {seed}")
    births, traits = list(BIRTHS), list(TRAITS)
    lives = [life for life in LIVES if life != "leave"]
    first = draw_node(draw, 1) | {
        "birth": births[seed % len(births)],
        "life": lives[seed % len(lives)],
        "closed": seed % 4 == 0,
    }
    first["traits"] = [*{*first["traits"], traits[seed % len(traits)]}]
    children = [first, *(draw_node(draw, 1) for _ in range(draw.randrange(3)))]
    main = "leave" if leaves else draw.choice(("wait", "wait", "threads", "talking", "leaderless", "stopped"))
    calm = [trait for trait in ("deaf", "masked", "session") if draw.random() < 0.3]
    plan = {"children": children, "life": main, "traits": calm, "closed": not leaves and draw.random() < 0.2}
    return bounded(plan)


def draw_node(draw: random.Random, depth: int) -> Plan:
    lives = [life for life in LIVES if life != "leave"]
    below = draw.choice((0, 0, 1, 2)) if depth < 4 else 0
    return {
        "birth": draw.choice(list(BIRTHS)),
        "traits": sorted(draw.sample(sorted(TRAITS), draw.randrange(4))),
        "renamed": draw.choice((None, None, "[kworker/u4:2]", "/usr/lib/systemd/systemd", "")),
        "closed": draw.random() < 0.25,
        "life": draw.choice(lives),
        "children": [draw_node(draw, depth + 1) for _ in range(below)],
    }


def bounded(plan: Plan) -> Plan:
    """The same with no more storms, busy ones and nodes than a machine that others use can take."""
    room = {"storm": STORMS, "busy": 1, "running": 1, "running_apart": 1}
    for node in nodes(plan):
        if node["birth"] == "vfork":  # it shares its parent's memory: no other program, no threads
            node |= {"renamed": None, "life": node["life"] if node["life"] in SIMPLE_LIVES else "wait"}
        life = node["life"]
        if life in room:
            node["life"] = life if room[life] else "wait"
            room[life] = max(0, room[life] - 1)
    while size(plan) > MOST_NODES:
        max(plan["children"], key=size)["children"].clear()
    return plan


def slowed_down(plan: Plan) -> Plan:
    """The same without those that are another process every moment."""
    for node in nodes(plan):
        if node["life"] in RUNNERS:
            node["life"] = "wait"
    return plan


def nodes(plan: Plan) -> Iterator[Plan]:
    for child in plan["children"]:
        yield child
        yield from nodes(child)
