#!/bin/sh
# Prepares the data of a pod before its server starts.
#
# Pod 0 is the primary. The script initializes its data if there is none, and sets the passwords of its roles from
# the Secret. All other pods are standbys: if a standby's data is not a copy of the primary that can catch up, the
# script takes a new copy. If the primary runs another major version, the script keeps the data and writes the state
# file "waiting". The script can be interrupted at any point and run again.
#
# The programs of one major version cannot read data of another. Such data is changed only if upgrade.sh recorded
# that it dumped the data and blocked connections for this very version. The data is then moved to old/ and replaced
# by new data, into which init.sh restores the dump.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trap 'exit 143' TERM INT

: "${POD_NAME:?}" "${DATABASE_HOME:?}" "${CONFIG:?}"
PGDATA=$DATABASE_HOME/data
OLD=$DATABASE_HOME/old
export PGDATA
own=$(major_of postgres)

data_major() { if [ -e "$1/PG_VERSION" ]; then cat "$1/PG_VERSION"; fi; }

note() { if [ -e "$PGDATA/$1" ]; then cat "$PGDATA/$1"; fi; }

# Initializes data.new, so that data is always complete.
new_data() {
  rm -rf "$PGDATA.new"
  initdb -D "$PGDATA.new" -U postgres --pwfile="$SECRETS/superuser-password" \
    --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale="${DATABASE_LOCALE:-C}" --data-checksums
}

# Between the two moves there is no data folder, only old/: see prepare_primary.
put_aside() {
  mv "$PGDATA" "$OLD"
  mv "$PGDATA.new" "$PGDATA"
}

change_major() {
  there=$(data_major "$PGDATA")
  case $(note restore) in
    '' | restored* | done) unfinished= ;;
    *) unfinished=yes ;;
  esac
  if [ -n "$unfinished" ] && [ "$(data_major "$OLD")" = "$own" ]; then
    say "the upgrade to PostgreSQL $there was not finished: going back to the data of PostgreSQL $own"
    mv "$PGDATA" "$PGDATA.discarded"
    mv "$OLD" "$PGDATA"
    rm -rf "$PGDATA.discarded"
    return 0
  fi
  dump=$(note upgrade)
  case $dump in
    "$own "*) ;;
    *) die "the data are of PostgreSQL $there and the programs of PostgreSQL $own, and there is no dump for this change: the data are left as they are. Set the image back to one of PostgreSQL $there" ;;
  esac
  say "putting the data of PostgreSQL $there aside; a dump of them waits to be restored: ${dump#* }"
  new_data
  printf '%s\n' "${dump#* }" > "$PGDATA.new/restore"
  rm -rf "$OLD"
  put_aside
}

# The Secret is the source of truth: each start sets the roles' passwords from it. Meanwhile only this script can
# reach the server, and its statements are not logged.
set_roles() {
  # Left by a killed server. No other server uses this volume, and the process ID in the file may by now belong to
  # another process.
  rm -f "$PGDATA/postmaster.pid"
  pg_ctl -D "$PGDATA" -w -t 86400 -o "-c config_file=$CONFIG/postgresql.conf -c hba_file=$CONFIG/pg_hba.conf -c listen_addresses= -c unix_socket_directories=$RUN" start
  PGHOST=$RUN
  PGUSER=postgres
  PGOPTIONS='-c synchronous_commit=local -c log_statement=none -c log_min_duration_statement=-1 -c log_min_error_statement=panic'
  export PGHOST PGUSER PGOPTIONS
  status=0
  query <<'SQL' || status=$?
\set superuser `cat "$SECRETS/superuser-password"`
\set replication `cat "$SECRETS/replication-password"`
\set metrics `if [ -e "$SECRETS/metrics-password" ]; then cat "$SECRETS/metrics-password"; fi`
ALTER ROLE postgres PASSWORD :'superuser';
SELECT 'CREATE ROLE replicator' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'replicator') \gexec
ALTER ROLE replicator LOGIN REPLICATION PASSWORD :'replication';
SELECT :'metrics' <> '' AS monitored \gset
\if :monitored
SELECT 'CREATE ROLE exporter' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'exporter') \gexec
ALTER ROLE exporter LOGIN PASSWORD :'metrics';
GRANT pg_monitor TO exporter;
\endif
SQL
  pg_ctl -D "$PGDATA" -m fast -w -t 86400 stop
  [ "$status" = 0 ] || die "the roles could not be given their passwords"
}

prepare_primary() {
  if [ ! -e "$PGDATA" ] && [ -e "$OLD/PG_VERSION" ]; then
    say "going on with the data in old/, which were being moved"
    mv "$OLD" "$PGDATA"
  fi
  rm -rf "$PGDATA.discarded"
  case $(data_major "$PGDATA") in
    '')
      if [ -e "$PGDATA" ]; then rmdir "$PGDATA" || die "$PGDATA holds something that is no data of PostgreSQL: it is left as it is"; fi
      new_data
      if [ -n "${RESTORE_FROM:-}" ]; then printf '%s\n' "$RESTORE_FROM" > "$PGDATA.new/restore"; fi
      mv "$PGDATA.new" "$PGDATA"
      ;;
    "$own")
      # The server started successfully with the restored data.
      case $(note restore) in restored* | done) rm -rf "$OLD" ;; esac
      ;;
    *) change_major ;;
  esac
  # Mounting a volume may make it group-writable, which PostgreSQL rejects.
  chmod 0700 "$PGDATA"
  set_roles
}

# Connects as for replication, which works also while upgrade.sh blocks connections.
primary_major() {
  version=$(query -d 'dbname=postgres replication=true' -c 'SHOW server_version_num' 2>/dev/null) || return 1
  say $((version / 10000))
}

# The replication slot keeps WAL on the primary that this standby has not read yet. The status "lost" means that
# the primary removed the WAL because it exceeded the limit.
slot_state() {
  query -v slot="$slot" <<'SQL'
SELECT coalesce(wal_status, 'unreserved') FROM pg_replication_slots WHERE slot_name = :'slot';
SQL
}

new_slot() {
  query -v slot="$slot" > /dev/null <<'SQL'
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = :'slot';
SELECT pg_create_physical_replication_slot(:'slot', true);
SQL
}

# Reports whether the data belongs to a standby of this major version.
usable() { [ -e "$PGDATA/standby.signal" ] && [ "$(data_major "$PGDATA")" = "$own" ]; }

prepare_standby() {
  : "${PRIMARY_HOST:?}"
  slot=standby_${POD_NAME##*-}
  umask 077
  printf '*:*:*:replicator:%s\n' "$(sed 's/[\\:]/\\&/g' "$SECRETS/replication-password")" > "$RUN/pgpass"
  PGHOST=$PRIMARY_HOST
  PGUSER=replicator
  PGPASSFILE=$RUN/pgpass
  PGCONNECT_TIMEOUT=5
  export PGHOST PGUSER PGPASSFILE PGCONNECT_TIMEOUT
  tries=0
  until primary=$(primary_major); do
    tries=$((tries + 1))
    # A standby serves reads also while its primary is down.
    if [ "$tries" -ge "${TRIES:-5}" ] && usable; then
      say "$PRIMARY_HOST does not answer: starting with what is here"
      return 0
    fi
    [ $((tries % 30)) -ne 1 ] || say "waiting for $PRIMARY_HOST to answer"
    sleep "${PAUSE:-2}"
  done
  if [ "$primary" != "$own" ]; then
    [ -e "$RUN/waiting" ] || say "the primary runs PostgreSQL $primary and this standby PostgreSQL $own: it follows once they are of one version"
    : > "$RUN/waiting"
    return 0
  fi
  rm -f "$RUN/waiting"
  # A copy can catch up with its own primary while the primary keeps the missing WAL.
  if usable; then
    here=$(pg_controldata -D "$PGDATA" | sed -n 's/^Database system identifier: *//p')
    there=$(query -c 'SELECT system_identifier FROM pg_control_system()')
    state=$(slot_state)
    if [ "$here" = "$there" ] && [ -n "$state" ] && [ "$state" != lost ]; then return 0; fi
  fi
  say "taking a copy of the primary's data"
  new_slot
  rm -rf "$PGDATA" "$PGDATA.new"
  pg_basebackup -w -D "$PGDATA.new" -X stream -S "$slot" -c fast
  : > "$PGDATA.new/standby.signal"
  mv "$PGDATA.new" "$PGDATA"
}

if [ "${POD_NAME##*-}" = 0 ]; then prepare_primary; else prepare_standby; fi
