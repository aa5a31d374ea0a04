# shellcheck shell=sh
# What the scripts of this chart have in common. Each says what it did, and never a password: those are
# read from files or come by the environment, and are on no command line.

# Where the server's socket and the marks of start.sh are; a folder of the pod's own.
RUN=${RUN:-/run/database}
# The Secret's keys, a file each.
SECRETS=${SECRETS:-/run/secrets/database}
# The kept claim. Below it are scheduled/, final/ and upgrade/, a folder a backup.
BACKUPS=${BACKUPS:-/backups}
export RUN SECRETS BACKUPS

say() { printf '%s\n' "$*"; }

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# The major version of a program of PostgreSQL: "pg_dump (PostgreSQL) 17.5 (Debian 17.5-1)" is 17.
major_of() {
  version=$("$1" --version) || die "there is no $1 in the image"
  printf '%s\n' "$version" | sed -n '1s/^[^0-9]*\([0-9][0-9]*\).*/\1/p'
}

# SQL to the server that PGHOST names, as a superuser: an answer a line and nothing else. What the server
# refuses ends psql with an error.
query() { psql -X -A -t -q -w -v ON_ERROR_STOP=1 -d postgres "$@"; }

# The major version of the server; fails where none answers.
server_major() {
  version=$(query -c 'SHOW server_version_num' 2>/dev/null) || return 1
  say $((version / 10000))
}

# Waits until the server answers and is of this major version, for so many seconds.
wait_for_server() {
  waited=0
  until found=$(server_major) && [ "$found" = "$1" ]; do
    [ "$waited" -lt "$2" ] || die "${PGHOST:-the server} does not answer as PostgreSQL $1: waited $2 seconds"
    [ $((waited % 60)) -ne 0 ] || say "waiting for $PGHOST to answer as PostgreSQL $1"
    sleep "${PAUSE:-2}"
    waited=$((waited + 2))
  done
}

# Reads a mark that prepare.sh or the server has left in the folder of the data; empty where there is none.
mark() { query -v file="$1" <<'SQL'
SELECT trim(both E'\n ' from coalesce(pg_read_file(:'file', 0, 1000, true), ''));
SQL
}

# Has the server write such a mark.
set_mark() { query -v file="$1" -v text="$2" <<'SQL'
SELECT format('COPY (SELECT %L) TO %L', :'text', current_setting('data_directory') || '/' || :'file') \gexec
SQL
}

# Dumps every database, and the roles, into a folder of $BACKUPS. The folder is there once all of it is.
dump_all() {
  umask 077
  partial=$BACKUPS/$1.partial
  rm -rf "$partial"
  mkdir -p "$partial"
  # Without the roles that prepare.sh makes: their passwords are those of the Secret, then as now.
  pg_dumpall -w --roles-only -f "$partial/roles.all"
  grep -v -E '^(CREATE|ALTER) ROLE (postgres|replicator|exporter)[ ;]' "$partial/roles.all" > "$partial/roles.sql"
  rm -f "$partial/roles.all"
  query > "$partial/databases.txt" <<'SQL'
SELECT CASE WHEN datname ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]*$' AND datname !~ '^oid-' THEN datname ELSE 'oid-' || oid END || '|' || datname
FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY oid;
SQL
  [ -s "$partial/databases.txt" ] || die "there is no database to dump"
  while IFS='|' read -r file database; do
    PGDATABASE=$database pg_dump -w -Fc -f "$partial/$file.dump"
    pg_restore --list "$partial/$file.dump" > /dev/null
    say "dumped database $database"
  done < "$partial/databases.txt"
  mv "$partial" "$BACKUPS/$1"
  say "the dump is $1"
}

# Lets everybody in again where lock of upgrade.sh has shut them out. The dump of that moment must not be
# restored any more, for it will not have what is written from now on.
unlock() {
  [ -e "$BACKUPS/limits.sql" ] || return 0
  set_mark upgrade '' || return 1
  lift_limits
}

lift_limits() {
  [ -e "$BACKUPS/limits.sql" ] || return 0
  query -f "$BACKUPS/limits.sql" || return 1
  rm -f "$BACKUPS/limits.sql"
  say "the databases take connections again"
}
