"""The task lists of Claude Code. The canonical list has texts with states; the rest is remembered here."""

from typing import Any

from msgspec import to_builtins

from handrail.dialects.dialect import Answered, Canonical, Surface
from handrail.dialects.render import drop_none
from handrail.protocol.errors import ToolError

_STATUS = {"pending": "pending", "in_progress": "active", "completed": "done"}


def _load_tasks(surface: Surface) -> dict[str, dict[str, Any]]:
    tasks = surface.memory.get("tasks")
    if tasks is None:
        states = {canonical: own for own, canonical in _STATUS.items()}
        items = enumerate(surface.list_todo(), 1)
        tasks = {str(n): {"id": str(n), "subject": item.text, "status": states[item.status]} for n, item in items}
        surface.memory["tasks"] = tasks
        surface.memory["next_task"] = len(tasks) + 1
    return tasks


def _store_tasks(tasks: dict[str, dict[str, Any]]) -> Canonical:
    return "todo", {"items": [{"text": one["subject"], "status": _STATUS[one["status"]]} for one in tasks.values()]}


def create_task(args: Any, surface: Surface) -> Canonical:
    tasks = _load_tasks(surface)
    task_id = str(surface.memory["next_task"])
    surface.memory["next_task"] += 1
    more = drop_none(activeForm=args.activeForm, metadata=args.metadata)
    tasks[task_id] = {
        "id": task_id,
        "subject": args.subject,
        "description": args.description,
        "status": "pending",
        **more,
    }
    surface.memory["task"] = tasks[task_id]
    return _store_tasks(tasks)


def show_created(one: Answered) -> tuple[str, dict[str, Any]]:
    task = one.surface.memory["task"]
    twin = {"task": {"id": task["id"], "subject": task["subject"]}}
    return f"Task #{task['id']} created successfully: {task['subject']}", twin


def _get_task(surface: Surface, task_id: str) -> dict[str, Any]:
    task = _load_tasks(surface).get(task_id)
    if task is None:
        raise ToolError("NOT_FOUND", f"Task not found: {task_id[:40]}")
    return task


def update_task(args: Any, surface: Surface) -> Canonical:
    tasks, task = _load_tasks(surface), _get_task(surface, args.taskId)
    changes = {
        name: getattr(args, name) for name in ("subject", "description", "activeForm", "status", "owner", "metadata")
    }
    given = drop_none(**changes)
    links = {"blocks": args.addBlocks, "blockedBy": args.addBlockedBy}
    given |= {name: [*task.get(name, []), *ids] for name, ids in links.items() if ids}
    surface.memory["update"] = (task.get("status"), given)
    if given.get("status") == "deleted":
        del tasks[args.taskId]
    else:
        task.update(given)
    return _store_tasks(tasks)


def show_updated(one: Answered) -> tuple[str, dict[str, Any]]:
    before, given = one.surface.memory["update"]
    twin: dict[str, Any] = {"success": True, "taskId": one.args.taskId, "updatedFields": list(given)}
    if "status" in given:
        twin["statusChange"] = {"from": before, "to": given["status"]}
    return f"Updated task #{one.args.taskId} {', '.join(given)}".rstrip(), twin


def list_tasks(_: Any, surface: Surface) -> Canonical:
    return _store_tasks(_load_tasks(surface))


def show_tasks(one: Answered) -> tuple[str, dict[str, Any]]:
    tasks = list(_load_tasks(one.surface).values())
    text = "\n".join(f"#{task['id']} [{task['status']}] {task['subject']}" for task in tasks) or "No tasks found"
    return text, {"tasks": tasks}


def find_task(args: Any, surface: Surface) -> Canonical:
    _get_task(surface, args.taskId)
    return list_tasks(args, surface)


def show_task(one: Answered) -> tuple[str, dict[str, Any]]:
    task = _get_task(one.surface, one.args.taskId)
    return f"Task #{task['id']}: {task['subject']}\nStatus: {task['status']}", {"task": task}


def write_todos(args: Any, surface: Surface) -> Canonical:
    surface.memory.pop("tasks", None)
    surface.memory["todos"] = (surface.memory.get("todos", ((), ()))[1], to_builtins(args.todos))
    return "todo", {"items": [{"text": item.content, "status": _STATUS[item.status]} for item in args.todos]}


def show_todos(one: Answered) -> tuple[str, dict[str, Any]]:
    old, new = one.surface.memory["todos"]
    text = "Todos have been modified successfully. Continue to use the todo list to track your progress."
    return text, {"oldTodos": list(old), "newTodos": list(new)}
