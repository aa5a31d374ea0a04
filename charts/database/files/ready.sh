#!/bin/sh
# Whether the server of this pod takes connections. One that waits for its primary, as start.sh tells,
# counts as ready, for the primary is changed only when the others are.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

if [ -e "$RUN/waiting" ]; then exit 0; fi
# Its answer is the text of the event "Readiness probe failed".
exec pg_isready -h "$RUN" -U postgres
