#!/bin/sh
# Starts the server of a pod after prepare.sh.
#
# Prepares the data again, because the container may have restarted alone: the pod may have another role now, or
# alive.sh found that it cannot catch up. A standby waits while the primary runs another major version. A StatefulSet
# updates pods one after another, and only when all others are ready, so a waiting pod must count as ready.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
child=
trap 'if [ -n "$child" ]; then kill "$child" 2> /dev/null; fi; exit 143' TERM INT

# Runs a command in the background, so that the shell handles signals.
run() {
  "$@" &
  child=$!
  wait "$child"
}

: "${POD_NAME:?}" "${PEER:?}" "${DATABASE_HOME:?}" "${CONFIG:?}"
PGDATA=$DATABASE_HOME/data
export PGDATA

: > "$RUN/preparing"
run sh "$(dirname "$0")/prepare.sh"
while [ -e "$RUN/waiting" ]; do
  run sleep "${PAUSE:-5}"
  run sh "$(dirname "$0")/prepare.sh"
done
rm -f "$RUN/preparing"

set -- -D "$PGDATA" -c "config_file=$CONFIG/postgresql.conf" -c "hba_file=$RUN/pg_hba.conf" -c "unix_socket_directories=$RUN"
level=open
if [ "$(cat "$RUN/role")" = primary ]; then
  if [ -s "$PGDATA/access" ]; then level=$(cat "$PGDATA/access"); fi
  if [ -n "$(cat "$PGDATA/fresh" 2> /dev/null)" ]; then level=closed; fi
else
  # The server follows whichever pod is the primary.
  ordinal=${POD_NAME##*-}
  hosts=
  for other in $(others "$ordinal"); do hosts=${hosts:+$hosts,}$(host_of "$other"); done
  set -- "$@" -c "primary_conninfo=host=$hosts port=${PGPORT:-5432} user=replicator passfile=$RUN/pgpass application_name=$POD_NAME target_session_attrs=primary connect_timeout=5" \
    -c "primary_slot_name=standby_$ordinal"
fi
cp "$CONFIG/pg_hba.$level.conf" "$RUN/pg_hba.conf"
exec postgres "$@"
