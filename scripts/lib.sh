# shellcheck shell=bash
# What the scripts in this folder share. Sourced, never run.
#
# Environments live in $home: $SERVING_BENCH_HOME, or .cache in the repository. Each is built in place under a lock
# and stamped last, so that an interrupted set-up has no stamp and the next one starts it over.
set -euo pipefail

root="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)"
home="${SERVING_BENCH_HOME:-$root/.cache}"
[[ "$home" == /* ]] || home="$PWD/$home"
unset PYTHONDONTWRITEBYTECODE # the environments here are ours, and aiperf alone starts ten processes from one of them
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}" # like pip: the certificates that the machine trusts

say() { printf 'serving-bench: %s\n' "$*" >&2; }

# fail MESSAGE [HINT]: end with exit status 1.
fail() {
  say "error: $1"
  [[ $# -lt 2 ]] || say "hint: $2"
  exit 1
}

# usage_error MESSAGE: end with exit status 2.
usage_error() {
  say "error: $1 (see --help)"
  exit 2
}

# find_python: print the first Python on the PATH that toolkit and bench environment both run on.
find_python() {
  local candidate
  for candidate in ${SERVING_BENCH_PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  fail "no Python 3.11, 3.12 or 3.13 found (looked for ${SERVING_BENCH_PYTHON:-python3, python3.13, python3.12, python3.11})" \
    "install one, or name one: SERVING_BENCH_PYTHON=/path/to/python3.12"
}

# need_home: make $home, and give uv and pip a cache where the user has no home folder to keep one in.
need_home() {
  mkdir -p -- "$home" 2>/dev/null && [[ -w "$home" ]] ||
    fail "$home: cannot be written" "set SERVING_BENCH_HOME to a folder that $(id -un) may write"
  [[ -n "${HOME:-}" && -d "${HOME:-}" && -w "${HOME:-}" ]] ||
    export UV_CACHE_DIR="${UV_CACHE_DIR:-$home/uv-cache}" PIP_CACHE_DIR="${PIP_CACHE_DIR:-$home/pip-cache}"
}

# locked PYTHON LOCKFILE COMMAND…: run a function or command while no other set-up holds LOCKFILE.
locked() {
  local python="$1" lockfile="$2" fd
  shift 2
  exec {fd}>"$lockfile"
  if ! "$python" -c "import fcntl; fcntl.flock($fd, fcntl.LOCK_EX | fcntl.LOCK_NB)" 2>/dev/null; then
    say "waiting for another set-up ($lockfile)"
    "$python" -c "import fcntl; fcntl.flock($fd, fcntl.LOCK_EX)"
  fi
  "$@"
  exec {fd}>&-
}

# current DIR FINGERPRINT: is the environment complete, as wanted, and does its Python still run?
current() {
  [[ -f "$1/.stamp" && "$(<"$1/.stamp")" == "$2" ]] && "$1/bin/python" -c '' 2>/dev/null
}

# find_uv: print the uv to use, or nothing.
find_uv() {
  if command -v uv >/dev/null; then command -v uv; elif [[ -f "$home/uv/.stamp" ]]; then printf '%s\n' "$home/uv/bin/uv"; fi
}

# ensure_uv PYTHON: where no uv is on the PATH, install the pinned one into $home/uv.
ensure_uv() {
  need_home
  [[ -z "$(find_uv)" ]] || return 0
  locked "$1" "$home/.uv.lock" install_uv "$1"
}

install_uv() {
  [[ -z "$(find_uv)" ]] || return 0
  say "installing uv into $home/uv"
  rm -rf -- "$home/uv"
  if ! make_venv_with_pip "$1" "$home/uv" || ! pip_install "$home/uv" uv; then
    say "uv cannot be had here: going on with pip, which is slower"
    return 0
  fi
  printf 'uv\n' >"$home/uv/.stamp"
}

make_venv_with_pip() {
  env -u PYTHONPATH -u PYTHONHOME "$1" -m venv -- "$2" >&2
}

pip_install() {
  env -u PYTHONPATH -u PYTHONHOME "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --require-hashes --requirement "$root/requirements/$2.txt" >&2
}

# end_on_signals: in a subshell, end at the next command after a signal. Without this, bash goes on after a SIGINT
# that its child took for itself and ended normally from.
end_on_signals() {
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
}

# install_with_uv UV PYTHON DIR LOCK [PROJECT]: runs in the repository, so that no uv settings of the caller's folder count.
install_with_uv() {
  end_on_signals
  cd -- "$root"
  unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
  "$1" venv --quiet --no-project --python "$2" -- "$3" || return
  "$1" pip install --python "$3/bin/python" --no-deps --require-hashes --requirement "requirements/$4.txt" || return
  [[ -z "${5:-}" ]] || "$1" pip install --python "$3/bin/python" --no-deps --no-build-isolation --editable "$root"
}

install_with_pip() {
  make_venv_with_pip "$1" "$2" || return
  pip_install "$2" "$3" || return
  [[ -z "${4:-}" ]] || env -u PYTHONPATH -u PYTHONHOME "$2/bin/python" -m pip install --quiet \
    --disable-pip-version-check --no-deps --no-build-isolation --editable "$root" >&2
}

# try_bench DIR: start each program once: what is broken shows here, and the first run finds its bytecode. Dynamo
# leaves a file of its logging in the folder for temporary files, so that is one that goes again.
try_bench() {
  local log="$1/try.log" module TMPDIR="$1/try.tmp"
  mkdir -p -- "$TMPDIR"
  export TMPDIR
  "$1/bin/aiperf" profile --help >"$log" 2>&1 || fail "aiperf does not start: $(tail -n 1 "$log")" "see $log"
  for module in dynamo.frontend dynamo.mocker; do
    "$1/bin/python" -m "$module" --help >"$log" 2>&1 || fail "$module does not start: $(tail -n 1 "$log")" "see $log"
  done
  rm -rf -- "$TMPDIR"
  "$1/bin/python" -m compileall -q -j 0 "$("$1/bin/python" -c 'import pathlib, aiperf; print(pathlib.Path(aiperf.__file__).parent)')"
}

# build_env PYTHON NAME LOCK FINGERPRINT [PROJECT]: build the environment unless another set-up just did.
build_env() {
  local python="$1" name="$2" lock="$3" fingerprint="$4" project="${5:-}" started="$SECONDS" dir="$home/$2" uv
  ! current "$dir" "$fingerprint" || return 0
  say "setting up $dir with $("$python" -V) (once; from requirements/$lock.txt)"
  uv="$(find_uv)"
  rm -rf -- "$dir"
  # The list of packages, a line each, is left out; what uv downloads and what goes wrong is shown.
  if [[ -z "$uv" ]] || ! (install_with_uv "$uv" "$python" "$dir" "$lock" "$project" 2>&1 | sed -u -e '/^ [-+~] /d' -e '/^Using Python/d' >&2); then
    say "installing with pip"
    rm -rf -- "$dir"
    install_with_pip "$python" "$dir" "$lock" "$project" ||
      fail "$dir could not be set up" "the lines above say why; the next call starts over"
  fi
  if declare -F "try_$name" >/dev/null; then "try_$name" "$dir"; fi
  printf '%s\n' "$fingerprint" >"$dir/.stamp"
  say "set up $name in $((SECONDS - started)) s"
}

# ensure_env NAME LOCK [PROJECT]: have the environment $home/NAME with exactly what requirements/LOCK.txt pins and,
# with a third argument, the package itself (from this folder, editable). To be called through run.
ensure_env() {
  end_on_signals
  local name="$1" lock="$2" project="${3:-}" fingerprint python
  fingerprint="$({
    printf '%s\n' "$home/$name"
    cat -- "$root/requirements/$lock.txt"
    [[ -z "$project" ]] || { printf '%s\n' "$root" && cat -- "$root/pyproject.toml"; }
  } | sha256sum)"
  ! current "$home/$name" "$fingerprint" || return 0
  python="$(find_python)"
  ensure_uv "$python"
  locked "$python" "$home/.$name.lock" build_env "$python" "$name" "$lock" "$fingerprint" "$project"
}

# signal_group NAME ID: signal a process group; without an id, or where it has just ended, nothing is done.
signal_group() {
  if [[ -n "$2" ]] && kill -0 -- "-$2" 2>/dev/null; then kill "-$1" -- "-$2"; fi
}

# end_group ID: wait until a signalled process group is gone; after 5 s it is killed.
end_group() {
  local tries
  for ((tries = 0; tries < 50; tries++)); do
    kill -0 -- "-$1" 2>/dev/null || return 0
    sleep 0.1
  done
  signal_group KILL "$1"
}

# run COMMAND…: run a command or function in a process group of its own and pass INT, TERM and HUP on to that group.
# So a signal to the script alone ends the command too, and one Ctrl-C at the terminal reaches it once. Gives the
# command's exit status, or ends the script with it after a signal.
run() {
  local child="" name status signals=0 seen
  for name in INT TERM HUP; do
    # shellcheck disable=SC2064  # the signal's name as it is now
    trap "signals=\$((signals + 1)); signal_group '$name' \"\$child\"" "$name"
  done
  set -m
  "$@" </dev/null &
  child=$!
  set +m
  [[ "$signals" == 0 ]] || signal_group TERM "$child" # it came before there was anything to pass it on to
  while true; do # a signal ends wait before the command has ended
    seen="$signals" status=0
    wait "$child" || status=$?
    [[ "$signals" != "$seen" ]] || break
  done
  trap - INT TERM HUP
  if [[ "$signals" != 0 ]]; then
    end_group "$child"
    exit "$status"
  fi
  return "$status"
}
