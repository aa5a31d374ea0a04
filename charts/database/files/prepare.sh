#!/bin/sh
# Prepares the data of a pod before its server starts, and decides whether the server is the primary or a standby.
#
# A folder of data with standby.signal belongs to a standby; only switch.sh turns it into a primary. A pod without
# data becomes the primary only if the setting "primary" names it and no other pod has data. New data is closed
# until init.sh has configured it, because the volume may have been lost, and a backup may have to be restored.
# A pod whose data is not a copy of the primary that can catch up takes a new copy. It deletes only data of which
# the primary's data is a continuation, and moves everything else aside.
#
# The programs of one major version cannot read data of another. Such data is changed only if upgrade.sh recorded
# that it dumped the data and locked the server for this very version. The data is then moved to old/ and replaced
# by new data, into which init.sh restores the dump. The script can be interrupted at any point and run again.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trap 'exit 143' TERM INT

: "${POD_NAME:?}" "${PEER:?}" "${DATABASE_HOME:?}" "${CONFIG:?}"
PGDATA=$DATABASE_HOME/data
OLD=$DATABASE_HOME/old
export PGDATA
own=$(major_of postgres)
ordinal=${POD_NAME##*-}

data_major() { if [ -e "$1/PG_VERSION" ]; then cat "$1/PG_VERSION"; fi; }

note() { if [ -e "$PGDATA/$1" ]; then cat "$PGDATA/$1"; fi; }

system_of() { pg_controldata -D "$1" | sed -n 's/^Database system identifier: *//p'; }

# Initializes data.new, so that data is always complete.
new_data() {
  rm -rf "$PGDATA.new"
  rm -f "$RUN/roles-set"
  initdb -D "$PGDATA.new" -U postgres --pwfile="$SECRETS/superuser-password" \
    --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale="${DATABASE_LOCALE:-C}" --data-checksums
  say closed > "$PGDATA.new/access"
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
    *) die "the data is of PostgreSQL $there and the programs are of PostgreSQL $own, and there is no dump for this change: the data is left as it is. Set the image back to one of PostgreSQL $there" ;;
  esac
  say "moving the data of PostgreSQL $there aside; its dump will be restored: ${dump#* }"
  new_data
  say "${dump#* }" > "$PGDATA.new/restore"
  { note predecessors; system_of "$PGDATA"; } > "$PGDATA.new/predecessors"
  rm -rf "$OLD"
  put_aside
}

# The Secret is the source of truth: each start of a pod sets the roles' passwords from it. Meanwhile only this script
# can reach the server, and its statements are not logged.
set_roles() {
  # Left by a killed server. No other server uses this volume, and the process ID in the file may by now belong to
  # another process.
  rm -f "$PGDATA/postmaster.pid"
  pg_ctl -D "$PGDATA" -w -t 86400 -o "-c config_file=$CONFIG/postgresql.conf -c hba_file=$CONFIG/pg_hba.closed.conf -c listen_addresses= -c unix_socket_directories=$RUN" start
  PGHOST=$RUN
  PGUSER=postgres
  PGOPTIONS='-c synchronous_commit=local -c log_statement=none -c log_min_duration_statement=-1 -c log_min_error_statement=panic'
  export PGHOST PGUSER PGOPTIONS
  status=0
  # The role exporter exists also without metrics, because grants in backups may name it.
  query << 'SQL' || status=$?
\set superuser `cat "$SECRETS/superuser-password"`
\set replication `cat "$SECRETS/replication-password"`
\set metrics `if [ -e "$SECRETS/metrics-password" ]; then cat "$SECRETS/metrics-password"; fi`
ALTER ROLE postgres PASSWORD :'superuser';
SELECT 'CREATE ROLE replicator' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'replicator') \gexec
ALTER ROLE replicator LOGIN REPLICATION PASSWORD :'replication';
SELECT 'CREATE ROLE exporter' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'exporter') \gexec
ALTER ROLE exporter NOLOGIN PASSWORD NULL;
SELECT :'metrics' <> '' AS monitored \gset
\if :monitored
ALTER ROLE exporter LOGIN PASSWORD :'metrics';
GRANT pg_monitor TO exporter;
\endif
SQL
  pg_ctl -D "$PGDATA" -m fast -w -t 86400 stop
  [ "$status" = 0 ] || die "the passwords of the roles could not be set"
}

prepare_primary() {
  case $(data_major "$PGDATA") in
    '')
      if [ -e "$PGDATA" ]; then rmdir "$PGDATA" || die "$PGDATA contains no data of PostgreSQL: it is left as it is"; fi
      new_data
      say yes > "$PGDATA.new/fresh"
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
  if [ ! -e "$RUN/roles-set" ]; then
    set_roles
    : > "$RUN/roles-set"
  fi
}

# The replication slot keeps WAL on the primary that this standby has not read yet. The status "lost" means that
# the primary removed the WAL because it exceeded the limit.
slot_state() {
  query -v slot="$slot" << 'SQL'
SELECT coalesce(wal_status, 'unreserved') FROM pg_replication_slots WHERE slot_name = :'slot';
SQL
}

new_slot() {
  query -v slot="$slot" > /dev/null << 'SQL'
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = :'slot';
SELECT pg_create_physical_replication_slot(:'slot', true);
SQL
}

# Reports whether the data belongs to a standby of this major version.
usable() { [ -e "$PGDATA/standby.signal" ] && [ "$(data_major "$PGDATA")" = "$own" ]; }

# Prints a value of the control file of the data.
control() { pg_controldata -D "$PGDATA" | sed -n "s/^$1: *//p"; }

# Reports whether the primary's data is a continuation of the data of this standby. After a failover, it is not if this
# standby has received more than the new primary: the data has WAL after the end of a timeline in the history of the
# primary.
continued() {
  timeline=$(control "Min recovery ending loc's timeline")
  if [ "${timeline:-0}" = 0 ]; then timeline=$(control "Latest checkpoint's TimeLineID"); fi
  current=$(query -d 'dbname=postgres replication=true' -c 'IDENTIFY_SYSTEM' | cut -d '|' -f 2)
  [ -n "$current" ] || return 1
  [ "$timeline" != "$current" ] || return 0
  command -v pg_waldump > /dev/null || return 1
  history=$(query -d 'dbname=postgres replication=true' -c "TIMELINE_HISTORY $current" | sed 's/^[0-9A-F]*[.]history|//')
  replayed=
  while read -r past end _; do
    [ -n "$end" ] || continue
    if pg_waldump -p "$PGDATA/pg_wal" -t "$past" -s "$end" -n 1 > /dev/null 2>&1; then return 1; fi
    [ "$past" = "$timeline" ] || continue
    replayed=$(query -v replayed="$(control 'Minimum recovery ending location')" -v end="$end" << 'SQL'
SELECT :'replayed'::pg_lsn <= :'end'::pg_lsn;
SQL
    )
  done << EOF
$history
EOF
  [ "$replayed" = t ]
}

# Reports whether the volume has space for a second copy of the data.
room() {
  used=$(du -sk "$PGDATA" | cut -f 1)
  free=$(df -Pk "$DATABASE_HOME" | awk 'END { print $4 }')
  [ "$free" -gt $((used + used / 5)) ]
}

# Removes the data. The rename is atomic, so that a part of the data never remains.
remove_data() {
  mv "$PGDATA" "$PGDATA.outdated"
  rm -rf "$PGDATA.outdated"
}

# Takes a copy of the primary's data. The previous data remains until the copy is complete, if the volume has space.
copy_data() {
  say "taking a copy of the data of $PGHOST"
  new_slot
  rm -rf "$PGDATA.new"
  here=
  if [ -e "$PGDATA/PG_VERSION" ]; then here=$(system_of "$PGDATA"); fi
  outdated=
  if usable && [ "$here" = "$there" ] && continued; then outdated=yes; fi
  if [ -n "$outdated" ] && ! room; then
    say "the volume has no space for two copies: removing the outdated copy first"
    remove_data
  fi
  pg_basebackup -w -D "$PGDATA.new" -X stream -S "$slot" -c fast
  for file in access fresh restore upgrade; do rm -f "$PGDATA.new/$file"; done
  : > "$PGDATA.new/standby.signal"
  if [ -n "$outdated" ] || [ -n "$(note fresh)" ]; then
    remove_data
  elif [ -e "$PGDATA/standby.signal" ] && grep -qxF "$here" "$PGDATA.new/predecessors" 2> /dev/null; then
    remove_data
  elif [ -e "$PGDATA" ]; then
    aside=$DATABASE_HOME/aside-$(date -u +%Y%m%dT%H%M%SZ)
    mv "$PGDATA" "$aside"
    say "the previous data is not part of the primary's data. It is kept in $aside; remove it when it is not needed"
  fi
  mv "$PGDATA.new" "$PGDATA"
}

prepare_standby() {
  slot=standby_$ordinal
  tries=0
  until primary=$(find_primary "$ordinal"); do
    tries=$((tries + 1))
    # A standby serves reads also while there is no primary, and switch.sh can make it the primary.
    if [ "$tries" -ge "${TRIES:-5}" ] && usable; then
      say "no other pod answers as a primary: starting with the existing data"
      return 0
    fi
    [ $((tries % 30)) -ne 1 ] || say "waiting for a primary to answer"
    sleep "${PAUSE:-2}"
  done
  PGHOST=$(host_of "$primary")
  export PGHOST
  version=$(query -d 'dbname=postgres replication=database' -c 'SHOW server_version_num')
  primary=$((version / 10000))
  if [ "$primary" != "$own" ]; then
    [ -e "$RUN/waiting" ] || say "the primary runs PostgreSQL $primary and this standby PostgreSQL $own: waiting until both have the same version"
    : > "$RUN/waiting"
    return 0
  fi
  rm -f "$RUN/waiting"
  there=$(query -c 'SELECT system_identifier FROM pg_control_system()')
  if usable && [ "$(system_of "$PGDATA")" = "$there" ]; then
    state=$(slot_state)
    if [ -n "$state" ] && [ "$state" != lost ]; then
      rm -rf "$OLD"
      rm -f "$PGDATA/access"
      return 0
    fi
  fi
  copy_data
}

# Prints the role of this pod. A pod without data waits while another pod has data.
decide() {
  tries=0
  reported=
  while [ ! -e "$PGDATA/standby.signal" ] && [ "$(cat "$CLUSTER/primary")" = "$ordinal" ]; do
    copy=
    silent=
    for other in $(others "$ordinal"); do
      case $(role_of "$other") in
        primary) say standby && return 0 ;;
        standby) copy=$other ;;
        *) silent=$other ;;
      esac
    done
    tries=$((tries + 1))
    if [ -e "$PGDATA/PG_VERSION" ]; then
      # A pod that does not answer at once may be the primary.
      if [ -z "$silent" ] || [ "$tries" -ge 3 ]; then say primary && return 0; fi
    elif [ -z "$copy" ]; then
      if [ "$tries" -ge 3 ]; then say primary && return 0; fi
    else
      tries=0
    fi
    if [ -n "$copy" ] && [ "$copy" != "$reported" ] && [ ! -e "$PGDATA/PG_VERSION" ]; then
      reported=$copy
      printf '%s\n' "the volume of this pod is empty, and pod ${POD_NAME%-*}-$copy has the data: set the value primary to $copy, or to another standby" >&2
    fi
    sleep "${PAUSE:-2}"
  done
  say standby
}

umask 077
printf '*:*:*:replicator:%s\n' "$(sed 's/[\\:]/\\&/g' "$SECRETS/replication-password")" > "$RUN/pgpass"
rm -rf "$PGDATA.outdated"
# change_major was interrupted between two moves.
if [ ! -e "$PGDATA" ] && [ -e "$OLD/PG_VERSION" ] && { [ -e "$PGDATA.discarded" ] || [ "$(cat "$PGDATA.new/access" 2> /dev/null)" = closed ]; }; then
  say "continuing with the data in old/, which was being moved"
  mv "$OLD" "$PGDATA"
fi
rm -rf "$PGDATA.discarded"
(
  # For all requests to other pods.
  export PGUSER=replicator PGPASSFILE="$RUN/pgpass" PGCONNECT_TIMEOUT=5
  role=$(decide)
  say "$role" > "$RUN/role"
  if [ "$role" = standby ]; then prepare_standby; fi
)
if [ "$(cat "$RUN/role")" = primary ]; then prepare_primary; fi
