#!/bin/sh
# Readiness: the server of this pod accepts connections. A standby that waits for its primary (see start.sh) counts as
# ready, because the StatefulSet updates the primary only when all other pods are ready.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

if [ -e "$RUN/waiting" ]; then exit 0; fi
# The output becomes the text of the event "Readiness probe failed".
exec pg_isready -h "$RUN" -U postgres
