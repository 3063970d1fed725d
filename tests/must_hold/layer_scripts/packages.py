"""What scripts do that install packages: many small files, made beside their place and moved there."""

from layer_scripts.scene import Scene


def install_modules(scene: Scene) -> str:
    """As npm does: in folders with other names first, with links to what can be run."""
    scene.add(b"node_modules", "folder")
    count = scene.draw.randrange(3, 12)
    return f"""mkdir -p node_modules/.bin
for n in $(seq {count}); do
    new=node_modules/.package-$n-staged; mkdir -p $new/lib/inner $new/bin
    for m in $(seq 8); do echo "module.exports = $n * $m" >$new/lib/part$m.js; done
    echo "{{\\"name\\": \\"package-$n\\", \\"version\\": \\"1.{scene.draw.randrange(9)}.$n\\"}}" >$new/package.json
    echo '#!/usr/bin/env node' >$new/bin/run.js; chmod 755 $new/bin/run.js; echo deep >$new/lib/inner/deep.js
    place=node_modules/package-$n; old=node_modules/.old-$n
    [ ! -d $place ] || {{ mv $place $old && rm -rf $old; }}
    mv $new $place
    ln -sf ../package-$n/bin/run.js node_modules/.bin/package-$n
done
printf '{{"lockfileVersion": 3, "count": {count}}}' >node_modules/.package-lock.json"""


def install_wheels(scene: Scene) -> str:
    """As pip does: files, their list, and what it compiled; an older version is put aside first."""
    scene.add(b"venv", "folder")
    version = scene.draw.randrange(5)
    return f"""site=venv/lib/python3/site-packages; mkdir -p $site venv/bin
for name in red green blue; do
    for old in $site/$name $site/$name-*.dist-info; do [ ! -e $old ] || mv $old $site/~${{old##*/}}; done
    mkdir -p $site/$name/data/inner $site/$name/__pycache__ $site/$name-{version}.dist-info
    for m in $(seq 12); do
        echo "VALUE = $m + {version}" >$site/$name/m$m.py; printf "\\0\\1$m" >$site/$name/__pycache__/m$m.pyc
    done
    seq 50 >$site/$name/data/inner/table.csv
    (cd $site && find $name -type f | LC_ALL=C sort | xargs sha256sum) >$site/$name-{version}.dist-info/RECORD
    echo pip >$site/$name-{version}.dist-info/INSTALLER
    printf '#!/usr/bin/python3\\n' >venv/bin/$name; chmod 755 venv/bin/$name
    rm -rf $site/~*
done
ln -sfn lib venv/lib64"""


def uninstall(scene: Scene) -> str | None:
    there = [path for path in (b"node_modules", b"venv") if path in scene.kinds]
    return f"rm -rf {scene.draw.choice(there).decode()}" if there else None


def build(scene: Scene) -> str:
    """As a build does: a folder beside it that takes the place of the old one."""
    scene.add(b"dist", "folder")
    return f"""mkdir -p dist.new/assets
for n in $(seq 60); do echo "part $n of {scene.number()}" >dist.new/assets/$n.js; done
cat dist.new/assets/*.js >dist.new/bundle.js; rm -rf dist; mv dist.new dist; (cd dist && ln -s bundle.js latest.js)"""


def unpack(scene: Scene) -> str | None:
    """An archive that keeps dates, modes and names of one file."""
    path = scene.add(scene.fresh(), "folder")
    del scene.kinds[path]
    return """mkdir -p packed/in; echo a >packed/a; ln packed/a packed/in/b; ln -s a packed/c; chmod 750 packed/in
touch -d 2002-02-02 packed/a; tar -cf packed.tar packed; rm -rf packed; tar -xpf packed.tar; rm packed.tar"""
