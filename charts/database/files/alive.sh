#!/bin/sh
# Liveness: the server of this pod answers, and has the right role. A standby whose WAL the primary has removed never
# catches up; a restart makes it take a new copy. A primary that another pod has replaced becomes a standby by a
# restart.
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
state=$(query -h "$RUN" -U postgres << 'SQL'
SELECT CASE WHEN NOT pg_is_in_recovery() THEN 'primary' ELSE coalesce((SELECT status FROM pg_stat_wal_receiver), '') END;
SQL
) || exit 0
export PGUSER=replicator PGPASSFILE="$RUN/pgpass" PGCONNECT_TIMEOUT=3
case $state in
  streaming) ;;
  primary)
    if [ "$(cat "$CLUSTER/primary")" != "$ordinal" ] || [ -n "$(cat "$DATABASE_HOME/data/fresh" 2> /dev/null)" ]; then
      if primary=$(find_primary "$ordinal"); then die "pod ${POD_NAME%-*}-$primary is the primary"; fi
    fi
    ;;
  *)
    primary=$(find_primary "$ordinal") || exit 0
    lost=$(query -h "$(host_of "$primary")" -v slot="standby_$ordinal" 2> /dev/null << 'SQL'
SELECT count(*) FROM pg_replication_slots WHERE slot_name = :'slot' AND wal_status = 'lost';
SQL
    ) || exit 0
    [ "$lost" = 0 ] || die "the primary has removed WAL that this standby needs"
    ;;
esac
