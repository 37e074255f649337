# shellcheck shell=bash
# For the scripts that run an instrument of the lab, which source it.

# Whether an option is among the words behind it.
given() {
  local name=$1 word
  shift
  for word; do [[ $word != "$name" && $word != "$name="* ]] || return 0; done
  return 1
}

# Prints the path of the binary: RAINGAUGE_BINARY, or one that is built, with the release profile or the one named.
binary() {
  local profile=${1:-release} build=(cargo build --locked -p raingauge)
  if [[ -z ${RAINGAUGE_BINARY:-} ]]; then
    [[ $profile == debug ]] || build+=(--release)
    "${build[@]}" >&2
  fi
  echo "${RAINGAUGE_BINARY:-${CARGO_TARGET_DIR:-target}/$profile/raingauge}"
}
