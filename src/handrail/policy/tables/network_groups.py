"""Programs that reach other machines, and package managers, which do so for some of their sub-commands."""

from handrail.policy.tables.form import ProgramClass

FETCHING: dict[str, str] = {
    "npm": """install i ci add update up upgrade uninstall remove publish audit outdated view info search login logout
        init create dist-tag deprecate fund ping star token whoami owner access pack link""",
    "pnpm": "install i add update up upgrade remove rm publish audit outdated dlx create fetch import link",
    "yarn": "install add upgrade up remove publish audit outdated dlx create global info npm",
    "bun": "install i add update remove publish create x",
    "deno": "install add cache update",
    "pip": "install download wheel index search uninstall",
    "pip3": "install download wheel index search uninstall",
    "uv": "sync add remove lock pip tool python publish self",
    "poetry": "install add remove update lock publish self search source",
    "pipenv": "install uninstall update lock sync upgrade",
    "pdm": "install add remove update lock sync publish",
    "conda": "install create update remove env search",
    "mamba": "install create update remove env search",
    "cargo": "install add update fetch publish search login vendor generate-lockfile remove uninstall yank owner",
    "go": "get install mod work",
    "gem": "install update fetch push uninstall search outdated",
    "bundle": "install update add outdated lock remove",
    "composer": "install update require remove create-project global outdated search self-update",
    "dotnet": "restore add nuget publish workload tool new",
    "mix": "deps.get deps.update hex.publish local.hex archive.install",
    "swift": "package",
    "mvn": "deploy install dependency:resolve",
    "flutter": "pub",
    "dart": "pub",
}
_MANAGERS = """
    npm pnpm yarn pip pip3 uv poetry pipenv pdm hatch flit conda mamba micromamba gem
    bundle bundler composer flutter dart rustup nvm fnm volta asdf mise pyenv rbenv sdk
"""
_SYSTEM_MANAGERS = """
    apt apt-get aptitude dnf yum rpm dpkg apk brew port pacman zypper snap flatpak nix nix-env emerge choco winget scoop
"""
_CLIENTS = """
    curl wget wget2 aria2c axel http https httpie xh ssh scp sftp ssh-copy-id ssh-add mosh ftp lftp tftp nc ncat netcat
    telnet socat openssl dig nslookup host drill whois ping ping6 traceroute tracepath mtr nmap rsync rclone gh glab hub
    aws gcloud gsutil az doctl heroku fly flyctl vercel netlify wrangler firebase kubectl oc k9s helm docker podman
    nerdctl buildah skopeo docker-compose vagrant terraform tofu terragrunt pulumi ansible ansible-playbook packer
    consul vault nomad svn hg bzr mail mailx sendmail mutt irssi youtube-dl yt-dlp cloudflared ngrok tailscale
"""

NETWORK_GROUPS: tuple[ProgramClass, ...] = (
    ProgramClass(
        rule="exec.package-manager",
        reason="fetches packages from the network and runs their scripts",
        effect="network",
        programs=frozenset(f"{name} {sub}" for name, subs in FETCHING.items() for sub in subs.split())
        | frozenset(_SYSTEM_MANAGERS.split())
        | frozenset(["python -m pip", "python3 -m pip", "npx", "pnpx", "bunx", "uvx", "pipx"]),
    ),
    ProgramClass(
        rule="exec.package-manager",
        reason="runs scripts of the project or of its packages",
        grantable=True,
        programs=frozenset(_MANAGERS.split()) | {"npm run", "pnpm run", "yarn run", "composer run"},
    ),
    ProgramClass(
        rule="exec.network",
        reason="reaches other machines",
        effect="network",
        programs=frozenset(_CLIENTS.split()),
    ),
)
