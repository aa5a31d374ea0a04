#!/bin/sh
# Readiness: the server of this pod accepts connections of applications. A standby that waits for its primary (see
# start.sh) counts as ready, because the StatefulSet updates a pod only when all others are ready. The output becomes
# the text of the event "Readiness probe failed".
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

if [ -e "$RUN/waiting" ]; then exit 0; fi
[ ! -e "$RUN/preparing" ] || die "the data is being prepared: see the log of this pod"
pg_isready -h "$RUN" -U postgres
data=${DATABASE_HOME:?}/data
if [ -n "$(cat "$data/fresh" 2> /dev/null)" ]; then
  die "the volume was empty, and the database has not been configured or restored: see restoreFrom and primary in the chart's README"
fi
if [ ! -e "$data/standby.signal" ] && [ "$(cat "$data/access" 2> /dev/null)" = closed ]; then die "a restore has not finished"; fi
