"""Programs that compute digests and encodings. A list of digests to check names files that the command does not."""

from handrail.policy.tables.form import ProgramSpec

_GNU = "help version"

DIGESTS = (
    ProgramSpec(
        name="sha256sum",
        also=("md5sum", "sha1sum", "sha224sum", "sha384sum", "sha512sum"),
        flags="btz",
        long_flags=f"binary tag text zero {_GNU}",
        match=("sha256sum a.bin", "md5sum a b", "sha1sum --tag a", "sha512sum -b dist/*"),
        no_match=("sha256sum -c SHA256SUMS", "md5sum --check a", "sha256sum -bc a", "sha256sum --unknown a"),
    ),
    ProgramSpec(
        name="b2sum",
        flags="btz",
        values="l",
        long_flags=f"binary tag text zero {_GNU}",
        long_values="length",
        match=("b2sum a.bin", "b2sum -l 256 a.bin"),
        no_match=("b2sum -c a", "b2sum --check a"),
    ),
    ProgramSpec(
        name="cksum",
        flags="z",
        values="al",
        long_flags=f"tag untagged raw base64 zero debug {_GNU}",
        long_values="algorithm length",
        match=("cksum a.bin", "cksum -a sha256 a.bin"),
        no_match=("cksum -c a", "cksum --check a"),
    ),
    ProgramSpec(
        name="sum",
        flags="rs",
        long_flags=f"sysv {_GNU}",
        match=("sum a.bin", "sum -s a"),
        no_match=("sum -o x a", "sum --output=x a"),
    ),
    ProgramSpec(
        name="base64",
        also=("base32",),
        flags="di",
        values="w",
        long_flags=f"decode ignore-garbage {_GNU}",
        long_values="wrap",
        match=("base64 a.bin", "base64 -d a.txt", "base64 -w0 a", "base32 a"),
        no_match=("base64 -o x a", "base64 --output=x a"),
    ),
    ProgramSpec(
        name="basenc",
        flags="di",
        values="w",
        long_flags="base64 base64url base32 base32hex base16 base2msbf base2lsbf z85 decode ignore-garbage "
        f"{_GNU}",
        long_values="wrap",
        match=("basenc --base64url a.bin", "basenc --base16 -d a.txt"),
        no_match=("basenc -o x a", "basenc --output=x a"),
    ),
)  # fmt: skip
