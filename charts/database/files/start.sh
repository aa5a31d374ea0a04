#!/bin/sh
# Starts the server of a pod after prepare.sh.
#
# A standby checks its data again: it takes a new copy if alive.sh found that it cannot catch up, and waits while the
# primary runs another major version. A StatefulSet updates pod 0 last, and only when all other pods are ready, so a
# waiting pod must count as ready.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trap 'exit 143' TERM INT

: "${POD_NAME:?}" "${DATABASE_HOME:?}" "${CONFIG:?}"
PGDATA=$DATABASE_HOME/data
export PGDATA

set -- -D "$PGDATA" -c "config_file=$CONFIG/postgresql.conf" -c "hba_file=$CONFIG/pg_hba.conf" -c "unix_socket_directories=$RUN"
ordinal=${POD_NAME##*-}
if [ "$ordinal" != 0 ]; then
  : > "$RUN/preparing"
  sh "$(dirname "$0")/prepare.sh"
  while [ -e "$RUN/waiting" ]; do
    # In the background, so that the shell handles signals.
    sleep "${PAUSE:-5}" &
    wait "$!"
    sh "$(dirname "$0")/prepare.sh"
  done
  rm -f "$RUN/preparing"
  set -- "$@" -c "primary_conninfo=host=$PRIMARY_HOST port=${PGPORT:-5432} user=replicator passfile=$RUN/pgpass application_name=$POD_NAME" \
    -c "primary_slot_name=standby_$ordinal"
fi
exec postgres "$@"
