# shellcheck shell=sh
# Functions of all scripts of this chart. Passwords are read from files or environment variables, are never printed,
# and are never on a command line.

# Folder of the pod for the server's socket and the state files of start.sh.
RUN=${RUN:-/run/database}
# The Secret's keys, one file per key.
SECRETS=${SECRETS:-/run/secrets/database}
# The kept claim, with scheduled/, final/ and upgrade/. Each backup is a folder below one of them.
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

# Runs SQL as a superuser on the server PGHOST. Prints one row per line. Fails on the first SQL error.
query() { psql -X -A -t -q -w -v ON_ERROR_STOP=1 -d postgres "$@"; }

# Prints the major version of the server. Fails if the server does not answer.
server_major() {
  version=$(query -c 'SHOW server_version_num' 2>/dev/null) || return 1
  say $((version / 10000))
}

# Waits until the server answers with the major version $1, at most $2 seconds.
wait_for_server() {
  waited=0
  until found=$(server_major) && [ "$found" = "$1" ]; do
    [ "$waited" -lt "$2" ] || die "${PGHOST:-the server} does not answer as PostgreSQL $1: waited $2 seconds"
    [ $((waited % 60)) -ne 0 ] || say "waiting for $PGHOST to answer as PostgreSQL $1"
    sleep "${PAUSE:-2}"
    waited=$((waited + 2))
  done
}

# Prints the contents of a state file in the data folder. Empty if the file does not exist.
mark() { query -v file="$1" <<'SQL'
SELECT trim(both E'\n ' from coalesce(pg_read_file(:'file', 0, 1000, true), ''));
SQL
}

# Writes a state file through the server.
set_mark() { query -v file="$1" -v text="$2" <<'SQL'
SELECT format('COPY (SELECT %L) TO %L', :'text', current_setting('data_directory') || '/' || :'file') \gexec
SQL
}

# Dumps all databases and roles into a folder below $BACKUPS. The folder appears only when the dump is complete.
dump_all() {
  umask 077
  partial=$BACKUPS/$1.partial
  rm -rf "$partial"
  mkdir -p "$partial"
  # Without the roles that prepare.sh creates: their passwords always come from the Secret.
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

# Allows connections again after lock of upgrade.sh. The dump becomes invalid, because it lacks the writes that are
# possible from now on.
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
