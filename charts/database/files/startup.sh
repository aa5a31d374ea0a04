#!/bin/sh
# Startup: waits until the server of this pod accepts connections, or prepare.sh runs. It waits up to 50 seconds
# instead of failing at once, because each failure is an event.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

waited=0
until [ -e "$RUN/preparing" ] || pg_isready -q -h "$RUN" -U postgres; do
  [ "$waited" -lt 50 ] || die "the server does not accept connections yet; it may be recovering"
  sleep "${PAUSE:-1}"
  waited=$((waited + 1))
done
