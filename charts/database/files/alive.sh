#!/bin/sh
# Liveness: the server of this pod answers and, on a standby, replication can continue. A standby whose WAL the
# primary has removed never catches up; a restart makes it take a new copy.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

if [ -e "$RUN/preparing" ]; then exit 0; fi
status=0
pg_isready -q -h "$RUN" -U postgres || status=$?
case $status in
  0) ;;
  # The server is starting, stopping or recovering.
  1) exit 0 ;;
  *) die "no server answers" ;;
esac
ordinal=${POD_NAME##*-}
if [ "$ordinal" = 0 ]; then exit 0; fi
export PGHOST="$PRIMARY_HOST" PGUSER=replicator PGPASSFILE="$RUN/pgpass" PGCONNECT_TIMEOUT=3
lost=$(query -v slot="standby_$ordinal" 2>/dev/null <<'SQL'
SELECT count(*) FROM pg_replication_slots WHERE slot_name = :'slot' AND wal_status = 'lost';
SQL
) || exit 0
[ "$lost" = 0 ] || die "the primary has let go of what this standby would need to follow"
