#!/bin/sh
# Writes requirements.txt and requirements-dev.txt from pyproject.toml: every version pinned with hashes,
# without the address of the index. Needs a package index, and uv only for this.
set -eu
cd "$(dirname "$0")"
if ! command -v uv >/dev/null; then
  python3 -m venv /tmp/uv
  /tmp/uv/bin/pip install --quiet 'uv>=0.8,<1'
  PATH=/tmp/uv/bin:$PATH
fi
# What this machine trusts, not only what uv brings: its HTTPS may be signed by a company's CA.
export SSL_CERT_FILE=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
lock() {
  uv pip compile pyproject.toml --quiet --universal --python-version 3.13 --generate-hashes \
    --no-emit-index-url --no-header "$@"
}
lock --upgrade --output-file requirements.txt
lock --upgrade --extra dev --constraint requirements.txt --output-file requirements-dev.txt
