#!/usr/bin/env bash
# make test SUITE=mutants: how many of NUMBER mutants, drawn by SEED from the judge and the kinds of
# experiment as they are in HEAD, do the Python tests notice? For maintainers, not for CI. It goes on
# where it stopped; outcomes are in .lab/mutants/<commit>/results.tsv. Needs the tests' image.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$PWD/.lab/mutants/$(git rev-parse HEAD)
if [[ ! -e $out/repo ]]; then
  mkdir -p "$out/part" && git archive HEAD | tar -x -C "$out/part" && mv "$out/part" "$out/repo"
fi
docker run --rm --init --network none --cap-drop ALL --read-only --tmpfs /tmp:exec,mode=1777 -u "$(id -u):$(id -g)" \
  --cpu-shares 512 --memory 8g -e HOME=/tmp -e LAB_REPO=/lab/repo -e PYTHONDONTWRITEBYTECODE= -e PYTHONPATH=/lab/repo/loadgen/src:/lab/repo/.ci/mutations \
  -v "$out:/out" -v "$out/repo:/lab/repo:ro" concurrency-lab/loadgen-test:local \
  python /lab/repo/.ci/mutations/drawn.py "${NUMBER:-600}" "${SEED:-1}" "${JOBS:-2}" /out
