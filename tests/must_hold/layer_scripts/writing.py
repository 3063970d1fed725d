"""Makes scripts: a few things after each other, some of them in a repository, some with very many files."""

from layer_scripts import files, folders, packages, repositories
from layer_scripts.scene import Operation, Scene
from layer_scripts.start import GIT

_FILES: tuple[Operation, ...] = (
    files.create, files.create, files.create_many, files.overwrite, files.overwrite, files.overwrite_with_the_same,
    files.append, files.truncate, files.write_in_the_middle, files.edit_by_rename, files.replace_by_rename,
    files.rename, files.rename, files.rename_over, files.swap, files.copy, files.delete, files.delete,
    files.delete_and_make_anew, files.make_and_delete, files.touch, files.date_back, files.make_sparse,
    files.hide_things_in_it, files.hide_less_in_it,
)  # fmt: skip
_FOLDERS: tuple[Operation, ...] = (
    folders.make_folder, folders.make_empty_folder, folders.rename, folders.rename, folders.rename_back,
    folders.move_into, folders.copy, folders.delete, folders.delete_and_make_anew, folders.empty_it,
    folders.file_becomes_folder, folders.folder_becomes_file, folders.there_and_back, folders.link,
    folders.link_to_nothing, folders.replace_link, folders.link_becomes_file, folders.file_becomes_link,
    folders.folder_becomes_link, folders.write_through_link, folders.another_name, folders.two_new_names,
    folders.write_through_a_name, folders.write_through_a_name, folders.change_mode, folders.change_mode_and_write,
    folders.change_folder_mode, folders.close_a_tree,
)  # fmt: skip
_REPOSITORIES: tuple[Operation, ...] = (
    repositories.begin, repositories.begin, repositories.commit, repositories.commit, repositories.stage,
    repositories.branch, repositories.branch, repositories.go_back, repositories.go_to_a_branch, repositories.merge,
    repositories.rebase, repositories.cherry_pick, repositories.stash, repositories.stash_and_take_back,
    repositories.collect_garbage, repositories.collect_garbage, repositories.forget, repositories.reset,
    repositories.clean, repositories.tag, repositories.remove, repositories.restore, repositories.set_up,
)  # fmt: skip
_PACKAGES: tuple[Operation, ...] = (
    packages.install_modules, packages.install_wheels, packages.uninstall, packages.build, packages.unpack,
)  # fmt: skip
_MOODS = ((_FILES, _FOLDERS), (_FILES, _FOLDERS), (_FILES, _FOLDERS, _REPOSITORIES, _REPOSITORIES), (_FILES, _PACKAGES))


def script_for(scene: Scene) -> str:
    """What is to be done in a tree, with everything fixed that git would take from the clock or from the person."""
    mood = scene.draw.choice(_MOODS)
    lines = [f"export {name}={value!r}" for name, value in GIT.items()]
    for _ in range(scene.draw.randrange(3, 13)):
        line = scene.draw.choice(scene.draw.choice(mood))(scene)
        lines += [line] if line else []
    if scene.draw.random() < 0.05:
        lines.append(files.make_large(scene))
    return "\n".join((*lines, "true"))
