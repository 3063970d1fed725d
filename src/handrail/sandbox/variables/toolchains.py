"""Variables that say where toolchains are. They are passed on where a command sees the place."""

PLACES = frozenset(
    {
        # Python
        "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE", "CONDA_PYTHON_EXE", "MAMBA_ROOT_PREFIX", "MAMBA_EXE",
        "UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR", "PIPX_HOME", "POETRY_HOME", "WORKON_HOME",
        # JavaScript
        "NVM_DIR", "NVM_BIN", "NVM_INC", "FNM_DIR", "FNM_MULTISHELL_PATH", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL",
        "DENO_INSTALL", "DENO_INSTALL_ROOT", "N_PREFIX", "COREPACK_HOME",
        # Rust, Go, C
        "CARGO_HOME", "RUSTUP_HOME", "GOROOT", "GOBIN", "CUDA_HOME", "CUDA_PATH", "EMSDK", "VCPKG_ROOT",
        # JVM
        "JAVA_HOME", "JDK_HOME", "JRE_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "ANT_HOME", "SDKMAN_DIR",
        "KOTLIN_HOME", "SCALA_HOME", "GROOVY_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT", "ANDROID_NDK_HOME",
        # others
        "GEM_HOME", "RBENV_ROOT", "RVM_PATH", "DOTNET_ROOT", "FLUTTER_ROOT", "DART_SDK", "GHCUP_INSTALL_BASE_PREFIX",
        "STACK_ROOT", "CABAL_DIR", "OPAMROOT", "OPAM_SWITCH_PREFIX", "MIX_HOME", "HEX_HOME", "ELIXIR_HOME", "R_HOME",
        "PLENV_ROOT", "PHPENV_ROOT", "COMPOSER_HOME", "SWIFTLY_HOME_DIR",
        # several at once
        "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "HOMEBREW_PREFIX", "HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY",
    }
)  # fmt: skip
LISTS = frozenset({"GOPATH", "GEM_PATH", "JULIA_DEPOT_PATH", "PKG_CONFIG_PATH", "MANPATH", "INFOPATH"})
"""Those that name several places, with colons between."""
