# shellcheck shell=sh
# Functions of all scripts of this chart. Passwords are read from files or environment variables, are never printed,
# and are never on a command line.

# Folder of the pod for the server's socket and the state files of start.sh.
RUN=${RUN:-/run/database}
# The Secret's keys, one file per key.
SECRETS=${SECRETS:-/run/secrets/database}
# The kept claim, with scheduled/, requested/, final/ and upgrade/. Each backup is a folder below one of them.
BACKUPS=${BACKUPS:-/backups}
# Settings that change without a restart of the pods: primary, the ordinal of the pod that is the primary, and pods,
# the number of pods.
CLUSTER=${CLUSTER:-/etc/cluster}
export RUN SECRETS BACKUPS CLUSTER

say() { printf '%s\n' "$*"; }

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# PostgreSQL needs a name for its user. On platforms that assign any user, such as OpenShift, the user has no name,
# and a library in the image answers instead of /etc/passwd.
if ! id -un > /dev/null 2>&1; then
  for library in /usr/lib/libnss_wrapper.so /usr/lib/*/libnss_wrapper.so; do
    [ -e "$library" ] || continue
    NSS_WRAPPER_PASSWD=/tmp/passwd NSS_WRAPPER_GROUP=/tmp/group LD_PRELOAD=$library
    printf 'postgres:x:%s:%s::/tmp:/bin/false\n' "$(id -u)" "$(id -g)" > "$NSS_WRAPPER_PASSWD"
    printf 'postgres:x:%s:\n' "$(id -g)" > "$NSS_WRAPPER_GROUP"
    export NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP LD_PRELOAD
    break
  done
fi

# Prints the host of the pod with ordinal $1. PEER is a format, for example db-%d.db-pods.apps.svc.
# shellcheck disable=SC2059
host_of() { printf "$PEER" "$1"; }

# Prints the ordinals of all pods except $1.
others() {
  count=${PODS:-$(cat "$CLUSTER/pods")}
  other=0
  while [ "$other" -lt "$count" ]; do
    [ "$other" = "$1" ] || say "$other"
    other=$((other + 1))
  done
}

# Prints "primary" or "standby" for the server of the pod with ordinal $1. Fails if the server does not answer. The
# connection counts as replication: it works also when max_connections is used up.
role_of() {
  recovers=$(query -h "$(host_of "$1")" -d 'dbname=postgres replication=database' -c 'SELECT pg_is_in_recovery()' 2> /dev/null) || return 1
  case $recovers in f) say primary ;; *) say standby ;; esac
}

# Prints the ordinal of a pod other than $1 that is a primary. A server that accepts no replication does not count:
# see closed in access.
find_primary() {
  for candidate in $(others "$1"); do
    if [ "$(role_of "$candidate")" = primary ]; then
      say "$candidate"
      return 0
    fi
  done
  return 1
}

# The major version of a program of PostgreSQL: "pg_dump (PostgreSQL) 17.5 (Debian 17.5-1)" is 17.
major_of() {
  version=$("$1" --version) || die "the image has no program $1"
  printf '%s\n' "$version" | sed -n '1s/^[^0-9]*\([0-9][0-9]*\).*/\1/p'
}

# Runs SQL as a superuser on the server PGHOST. Prints one row per line. Fails on the first SQL error.
query() { psql -X -A -t -q -w -v ON_ERROR_STOP=1 -d postgres "$@"; }

# Prints the major version of the server. Fails if the server does not answer.
server_major() {
  version=$(query -c 'SHOW server_version_num' 2> /dev/null) || return 1
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

# Prints the contents of a state file in the data folder. Empty if the file does not exist. State files:
#   fresh     not empty: the data is new, and init.sh has not configured it
#   restore   a backup to restore, "restored <backup>", or "done"
#   upgrade   the major version and the dump that an upgrade may use
#   access    open, locked or closed: see access
mark() { query -v file="$1" << 'SQL'
SELECT trim(both E'\n ' from coalesce(pg_read_file(:'file', 0, 1000, true), ''));
SQL
}

# Writes a state file through the server.
set_mark() { query -v file="$1" -v text="$2" << 'SQL'
SELECT format('COPY (SELECT %L) TO %L', :'text', current_setting('data_directory') || '/' || :'file') \gexec
SQL
}

# Sets who can connect, now and after restarts: everyone (open), only superusers, standbys and the exporter (locked),
# or only superusers (closed).
access() {
  since=$(query -c 'SELECT clock_timestamp()') || return 1
  set_mark access "$1" || return 1
  query -v level="$1" > /dev/null << 'SQL' || return 1
SELECT regexp_replace(current_setting('config_file'), '[^/]*$', 'pg_hba.') || :'level' || '.conf' AS rules \gset
SELECT format('COPY (SELECT regexp_split_to_table(trim(both E''\n'' from pg_read_file(%L)), E''\n'')) TO %L', :'rules', current_setting('hba_file')) \gexec
SELECT pg_reload_conf();
SQL
  # Only a new session reports when the server has loaded the rules.
  until [ "$(query -v since="$since" << 'SQL'
SELECT pg_conf_load_time() > :'since'::timestamptz;
SQL
  )" = t ]; do sleep "${PAUSE:-1}"; done
}

# Ends the sessions of all users, and lets only superusers, standbys and the exporter connect. Sessions that were
# logging in meanwhile are ended, too: lock returns when three checks in a row find no session.
lock() {
  access locked || return 1
  quiet=0
  while [ "$quiet" -lt 3 ]; do
    ended=$(query << 'SQL'
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND coalesce(usename, '') <> 'exporter';
SQL
    ) || return 1
    if [ "$ended" = 0 ]; then quiet=$((quiet + 1)); else quiet=0; fi
    sleep "${PAUSE:-1}"
  done
  say "the server accepts no connections of applications"
}

# Lets everyone connect again. A dump that was taken for an upgrade becomes invalid, because it lacks later writes.
# After an interrupted switch.sh, the data of a primary has standby.signal. The working directory of the server is its
# data folder.
unlock() {
  set_mark upgrade '' || return 1
  query << 'SQL' || return 1
SELECT $$COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; rm -f standby.signal'$$ WHERE NOT pg_is_in_recovery() \gexec
SQL
  access open || return 1
  say "the server accepts connections of applications again"
}

# Prints the newest backup: the names end with the time of the backup.
latest_backup() {
  newest=$(for folder in "$BACKUPS"/scheduled/*Z "$BACKUPS"/requested/*Z "$BACKUPS"/final/*Z; do
    if [ -d "$folder" ]; then say "${folder##*/} ${folder#"$BACKUPS"/}"; fi
  done | sort | tail -n 1)
  [ -n "$newest" ] && say "${newest#* }"
}

# Fails unless the server is a primary whose data is complete.
check_complete() {
  recovers=$(query -c 'SELECT pg_is_in_recovery()') || die "$PGHOST does not answer"
  [ "$recovers" = f ] || die "$PGHOST is a standby, so the backup might lack writes of the primary: set primary to the pod that is the primary"
  fresh=$(mark fresh) || die "$PGHOST does not answer"
  [ -z "$fresh" ] || die "the server has an empty volume, so a backup would replace good backups by an empty one: restore the database first"
  pending=$(mark restore) || die "$PGHOST does not answer"
  case $pending in '' | done | 'restored '*) ;; *) die "the restore of $pending has not finished" ;; esac
}

# Fails if a dump would lack a database.
check_connections() {
  closed=$(query << 'SQL'
SELECT string_agg(quote_ident(datname), ', ' ORDER BY datname) FROM pg_database WHERE NOT datallowconn AND datname <> 'template0';
SQL
  ) || die "$PGHOST does not answer"
  [ -z "$closed" ] || die "the backup would lack databases, because no connections are allowed to: $closed. Allow them with ALTER DATABASE ... ALLOW_CONNECTIONS true, or drop the databases"
}

# Dumps all databases and roles into a folder below $BACKUPS. The folder appears only when the dump is complete.
dump_all() {
  umask 077
  partial=$BACKUPS/$1.partial
  rm -rf "$partial"
  mkdir -p "$partial"
  pg_dumpall -w --roles-only -f "$partial/roles.sql"
  query > "$partial/databases.txt" << 'SQL'
SELECT CASE WHEN datname ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]*$' AND datname !~ '^oid-' THEN datname ELSE 'oid-' || oid END || '|' || datname
FROM pg_database WHERE datallowconn AND datname NOT IN ('template0', 'template1') ORDER BY oid;
SQL
  [ -s "$partial/databases.txt" ] || die "there is no database to dump"
  while IFS='|' read -r file database; do
    PGDATABASE=$database pg_dump -w -Fc -f "$partial/$file.dump"
    pg_restore --list "$partial/$file.dump" > /dev/null
    say "dumped database $database"
  done < "$partial/databases.txt"
  mv "$partial" "$BACKUPS/$1"
  say "the backup is $1"
}
