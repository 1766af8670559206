#!/usr/bin/env bash
# Gives Grafana's user `admin` the password that `make` has for it now (.lab/<project>/env). Grafana
# itself reads that only when it makes its database, which a volume keeps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

set -a
# shellcheck source=/dev/null
. "./$state/env"
set +a
if [[ ,$COMPOSE_PROFILES, != *,grafana,* ]]; then exit 0; fi

# What the container does: nothing where the password is right. /api/user is for nobody without one.
inside='
login=$(printf "admin:%s" "$GF_SECURITY_ADMIN_PASSWORD" | base64 | tr -d "\n")
if wget -q -O /dev/null --header "Authorization: Basic $login" http://localhost:3000/api/user; then exit 0; fi
printf "%s\n" "$GF_SECURITY_ADMIN_PASSWORD" |
  grafana cli --homepath /usr/share/grafana admin reset-admin-password --password-from-stdin'
mkdir -p "$state/logs"
if ! docker compose exec -T grafana sh -c "$inside" >"$state/logs/grafana.log" 2>&1 </dev/null; then
  say "lab: warning: Grafana did not take the password of its user admin: dashboards cannot be edited ($state/logs/grafana.log)"
fi
