#!/bin/sh
# The initial configuration, after every install, upgrade and rollback: restores a backup if one is pending, creates
# the role and the database if they do not exist, and takes a first backup.
# With the argument "if-needed", on a schedule while restoreFrom is set: does nothing unless a restore is pending and
# no other run of this script is active.
#
# Data that prepare.sh has initialized is fresh, and closed for applications. If the database was configured before,
# which the file identity of the backups' claim records, the volume of the primary was lost. Then the script never
# opens an empty database, unless restoreFrom is "none".
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

: "${DATABASE:?}" "${OWNER:?}" "${PODS:?}" "${PRIMARY:?}" "${INCARNATION:?}"
own=$(major_of pg_dump)

# Restores roles and databases. Roles that the chart creates keep their passwords, which always come from the Secret.
restore() {
  from=$1
  if [ "$from" = latest ]; then from=$(latest_backup) || die "restoreFrom is latest, but the claim contains no backup: remove restoreFrom"; fi
  folder=$BACKUPS/$from
  [ -e "$folder/databases.txt" ] || die "the backup $from is not in the claim"
  say "restoring $from"
  if [ -n "$fresh" ]; then set_mark fresh "restoring $from"; fi
  roles=$(mktemp)
  sed -E '/^(CREATE|ALTER) ROLE (postgres|replicator|exporter)[ ;]/d' "$folder/roles.sql" > "$roles"
  # Some roles already exist. Only error codes are printed, and statements are not logged, because they contain passwords.
  errors=$(PGOPTIONS='-c log_statement=none -c log_min_duration_statement=-1 -c log_min_error_statement=panic' psql -X -q -w -v VERBOSITY=sqlstate -d postgres -f "$roles" 2>&1 > /dev/null) || die "psql: $errors"
  rm -f "$roles"
  if failed=$(printf '%s\n' "$errors" | grep -F ERROR | grep -v 42710); then die "roles could not be restored: $failed"; fi
  while IFS='|' read -r file database; do
    if [ "$database" = postgres ]; then
      pg_restore -w --clean --if-exists --exit-on-error -d postgres "$folder/$file.dump"
    else
      pg_restore -w --clean --if-exists --create --exit-on-error -d postgres "$folder/$file.dump"
    fi
    say "restored database $database"
  done < "$folder/databases.txt"
}

# Lets one run of this script at a time change the server: holds a lock in a session that ends with this script.
# Fails if another run has the lock.
try_lock() {
  folder=$(mktemp -d)
  mkfifo "$folder/statements"
  query -v purpose=lock < "$folder/statements" > "$folder/result" &
  holder=$!
  # psql reads until the script ends.
  exec 3> "$folder/statements"
  say 'SELECT pg_try_advisory_lock(1129);' >&3
  until [ -s "$folder/result" ]; do
    kill -0 "$holder" 2> /dev/null || [ -s "$folder/result" ] || die "$PGHOST does not answer"
    sleep 0.2
  done
  got=$(cat "$folder/result")
  rm -r "$folder"
  [ "$got" = t ] && return 0
  exec 3>&-
  return 1
}

# Refuses to replace data that exists elsewhere. After a loss, it gives the other pods time to answer.
check_copies() {
  if [ "${RESTORE_FROM:-}" = none ]; then return 0; fi
  checks=1
  if [ "$(cat "$BACKUPS/identity" 2> /dev/null)" = "$INCARNATION" ]; then checks=${CHECKS:-10}; fi
  while [ "$checks" -gt 0 ]; do
    check_other_pods
    checks=$((checks - 1))
    if [ "$PODS" -gt 1 ] && [ "$checks" -gt 0 ]; then sleep "${PAUSE:-5}"; fi
  done
  case $fresh in
    'restoring '*)
      [ -n "${RESTORE_FROM:-}" ] || die "the restore of ${fresh#restoring } has not finished: set restoreFrom to it, or to latest"
      ;;
  esac
  if [ -z "${RESTORE_FROM:-}" ] && [ "$(cat "$BACKUPS/identity" 2> /dev/null)" = "$INCARNATION" ]; then
    die "the volume of pod $PRIMARY is empty, but this database was configured before: set restoreFrom to latest or to a backup. To start with an empty database, set restoreFrom to none"
  fi
}

check_other_pods() {
  for other in $(others "$PRIMARY"); do
    if role=$(role_of "$other"); then
      die "the volume of pod $PRIMARY is empty, and pod $other has data as a $role: set primary to $other. To discard that data, set restoreFrom to none"
    fi
  done
}

wait_for_server "$own" "${WAIT:-240}"
if [ "${1:-}" = if-needed ]; then
  try_lock || { say "the initial configuration runs" && exit 0; }
else
  until try_lock; do sleep "${PAUSE:-2}"; done
  # An interrupted switch.sh may have left only standbys.
  if [ "$(role_of "$PRIMARY")" = standby ]; then sh "$(dirname "$0")/switch.sh"; fi
fi
fresh=$(mark fresh)
pending=$(mark restore)
case $pending in '' | done | 'restored '*) pending_restore= ;; *) pending_restore=$pending ;; esac
level=$(mark access)
if [ "${1:-}" = if-needed ] && [ -z "$fresh$pending_restore" ] && [ "$level" != closed ]; then
  say "nothing to restore"
  exit 0
fi
if [ -n "$fresh" ]; then
  check_copies
  case ${RESTORE_FROM:-none} in none) ;; *) restore "$RESTORE_FROM" ;; esac
elif [ -n "$pending_restore" ]; then
  restore "$pending_restore"
  # From here on, a rollback to the old data and a second restore are refused: both would lose new writes.
  set_mark restore "restored $pending_restore"
fi

query -v owner="$OWNER" -v database="$DATABASE" << 'SQL'
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_error_statement = 'panic';
\set password `cat "$SECRETS/password"`
SELECT format('CREATE ROLE %I', :'owner') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'owner') \gexec
ALTER ROLE :"owner" LOGIN PASSWORD :'password';
SELECT format('CREATE DATABASE %I OWNER %I', :'database', :'owner')
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec
SQL
for extension in ${EXTENSIONS:-}; do
  query -d "$DATABASE" -v extension="$extension" << 'SQL'
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS :"extension";
SQL
done

# The database's comment records that the statements ran. Both happen in one transaction.
done_before=$(query -v database="$DATABASE" << 'SQL'
SELECT count(*) FROM pg_database WHERE datname = :'database' AND shobj_description(oid, 'pg_database') IS NOT NULL;
SQL
)
if [ "$done_before" = 0 ]; then
  query -d "$DATABASE" -v owner="$OWNER" -v database="$DATABASE" -v file="${INIT_SQL:-/dev/null}" --single-transaction -f - > /dev/null << 'SQL'
SET ROLE :"owner";
\i :file
SET ROLE :"owner";
COMMENT ON DATABASE :"database" IS 'initial configuration done';
SQL
  say "database $DATABASE was created; its owner is $OWNER"
fi

# The primary, and standbys that a scale-down removed, need no replication slot.
query -v pods="$PODS" -v primary="$PRIMARY" > /dev/null << 'SQL'
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
  WHERE NOT active AND slot_name ~ '^standby_[0-9]+$' AND (substr(slot_name, 9)::int >= :pods OR substr(slot_name, 9)::int = :primary);
SQL

if [ -d "$BACKUPS" ]; then say "$INCARNATION" > "$BACKUPS/identity"; fi
if [ -n "$fresh" ]; then set_mark fresh ''; fi
if [ "$level" != open ]; then unlock; fi
if [ -n "$fresh$pending" ] && [ "$pending" != 'done' ]; then
  set_mark restore 'done'
  vacuumdb -w --all --analyze-only --quiet || say "the planner has no statistics yet; autovacuum will create them"
fi

# The first backup proves that backups work, and binds a claim whose StorageClass waits for the first consumer.
if [ -d "$BACKUPS" ] && ! latest_backup > /dev/null; then
  sh "$(dirname "$0")/backup.sh" scheduled
fi
say "database $DATABASE is configured"
