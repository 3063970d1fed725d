#!/bin/bash

LIMIT=3
export NAME="shop"

# Opens a shop.
open_shop() {
    local day=1
    if [ -z "$1" ]; then
        return 1
    fi
}

function total {
    for one in "$@"; do
        echo "$one"
    done
}

open_shop "$NAME"
