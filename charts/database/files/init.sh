#!/bin/sh
# The initial configuration, after every install, upgrade and rollback: restores a pending backup, creates the role
# and the database if they do not exist, and takes a first backup.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

: "${DATABASE:?}" "${OWNER:?}" "${REPLICAS:?}"
own=$(major_of pg_dump)

# Prints the newest backup. Backups taken at a deletion come first.
latest() {
  for set in final scheduled; do
    newest=
    for folder in "$BACKUPS/$set"/*Z; do
      if [ -d "$folder" ]; then newest=$set/${folder##*/}; fi
    done
    if [ -n "$newest" ]; then
      say "$newest"
      return 0
    fi
  done
  return 1
}

restore() {
  from=$1
  if [ "$from" = latest ]; then from=$(latest) || die "there is no backup in the claim: set restoreFrom to nothing"; fi
  folder=$BACKUPS/$from
  [ -e "$folder/databases.txt" ] || die "the dump $from is not in the backups' claim"
  say "restoring $from"
  # Some roles already exist. Only error codes are printed, and statements are not logged, because they contain passwords.
  errors=$(PGOPTIONS='-c log_statement=none -c log_min_duration_statement=-1 -c log_min_error_statement=panic' psql -X -q -w -v VERBOSITY=sqlstate -d postgres -f "$folder/roles.sql" 2>&1 >/dev/null) || die "psql: $errors"
  if others=$(printf '%s\n' "$errors" | grep -F ERROR | grep -v 42710); then die "roles could not be restored: $others"; fi
  while IFS='|' read -r file database; do
    if [ "$database" = postgres ]; then
      pg_restore -w --clean --if-exists --exit-on-error -d postgres "$folder/$file.dump"
    else
      pg_restore -w --clean --if-exists --create --exit-on-error -d postgres "$folder/$file.dump"
    fi
    say "restored database $database"
  done < "$folder/databases.txt"
  # From here on, a rollback to the old data and a second restore are refused: both would lose new writes.
  set_mark restore "restored $from"
}

finish_restore() {
  # Only databases in a dump of upgrade.sh have connections disabled.
  case $1 in upgrade/*) lift_limits ;; esac
  set_mark restore 'done'
  vacuumdb -w --all --analyze-only --quiet || say "the planner's statistics could not be made; autovacuum will make them"
}

wait_for_server "$own" "${WAIT:-240}"
waits=$(mark restore)
case $waits in
  '' | done) unlock ;;
  'restored '*) finish_restore "${waits#restored }" ;;
  *)
    restore "$waits"
    waits=$(mark restore)
    finish_restore "${waits#restored }"
    ;;
esac

query -v owner="$OWNER" -v database="$DATABASE" <<'SQL'
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
  query -d "$DATABASE" -v extension="$extension" <<'SQL'
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS :"extension";
SQL
done

# The database's comment records that the statements ran. Both happen in one transaction.
done_before=$(query -v database="$DATABASE" <<'SQL'
SELECT count(*) FROM pg_database WHERE datname = :'database' AND shobj_description(oid, 'pg_database') IS NOT NULL;
SQL
)
if [ "$done_before" = 0 ]; then
  query -d "$DATABASE" -v owner="$OWNER" -v database="$DATABASE" -v file="${INIT_SQL:-/dev/null}" --single-transaction -f - > /dev/null <<'SQL'
SET ROLE :"owner";
\i :file
SET ROLE :"owner";
COMMENT ON DATABASE :"database" IS 'initial configuration done';
SQL
  say "database $DATABASE is made, and belongs to $OWNER"
fi

# Standbys that a scale-down removed need no replication slot.
query -v replicas="$REPLICAS" > /dev/null <<'SQL'
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
  WHERE NOT active AND slot_name ~ '^standby_[0-9]+$' AND substr(slot_name, 9)::int >= :replicas;
SQL

# The first backup proves that backups work, and binds a claim whose StorageClass waits for the first consumer.
if ! latest > /dev/null; then
  sh "$(dirname "$0")/backup.sh" scheduled
fi
say "database $DATABASE is as asked for"
