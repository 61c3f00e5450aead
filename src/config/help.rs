//! The table of settings as people read it.

use std::fmt::Write as _;

use super::{
    HubConfig,
    domain::DOMAIN_KEYS,
    table::{SETTINGS, Setting},
};

/// The settings as flags, for `--help`.
#[must_use]
pub fn flags() -> String {
    let defaults = HubConfig::default();
    let mut out = String::new();
    let mut section = "";
    for setting in SETTINGS {
        let own = setting.key.split_once('.').map_or("", |(section, _)| section);
        if own != section {
            section = own;
            out.push('\n');
        }
        // Writing to a string can't fail.
        let _ = writeln!(out, "  --{} {}", setting.flag(), (setting.placeholder)());
        let _ = writeln!(out, "        {} [default: {}]", setting.help, default(setting, &defaults));
    }
    out
}

/// The settings as a page of documentation.
#[must_use]
pub fn markdown() -> String {
    let defaults = HubConfig::default();
    let mut out = String::from(
        "# Configuration\n\n\
         A hub needs none. What is set comes from a TOML file (`--config FILE` or `EVENTFLOW_CONFIG`), is\n\
         overridden by environment variables, and those by flags. `limits.ping` is `ping` under `[limits]` in the\n\
         file, `EVENTFLOW_LIMITS_PING` in the environment and `--limits-ping` as a flag; so it is for every key.\n\
         `eventflow-hub --check` reads all three, lists every problem with its place, and else prints each value\n\
         with where it came from.\n\n\
         Unknown keys and flags are refused, unknown `EVENTFLOW_…` variables only warned of. Durations are written\n\
         `500ms`, `30s`, `5m`, `24h`, `7d`; sizes `64 KiB`, `8 MiB`, or plain bytes. npm's variables take npm's\n\
         plain milliseconds and days.\n\n\
         | key | value | default | meaning | other names |\n|---|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let npm: Vec<_> = setting.npm.iter().map(|npm| format!("`{}`", npm.name)).collect();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            setting.key,
            (setting.placeholder)().replace('|', " or "),
            default(setting, &defaults),
            setting.help,
            npm.join(", "),
        );
    }
    out.push_str("\n## Domains\n\n");
    let keys: Vec<_> = DOMAIN_KEYS.iter().map(|known| format!("`{}`", known.key)).collect();
    let _ = write!(
        out,
        "What some domains want otherwise stands in the file, in any number of `[[domain]]` up to 256. Each has a\n\
         `pattern`, and any of {};\nwhat it doesn't set is as the setting of that name says for all domains. Of several \
         entries that match a\ndomain the first holds, whole: what it leaves out isn't looked for in the next one.\n\n\
         ```toml\n\
         keep_success = \"30d\"\n\n\
         [[domain]]\n\
         pattern = \"orders.>\"\n\
         orphan_keep = \"7d\"\n\
         keep_success = \"forever\"\n\n\
         [[domain]]\n\
         pattern = \"metrics.>\"\n\
         orphan_keep = \"1m\"\n\
         expire_after = \"10m\"\n\
         keep_success = \"1h\"\n\
         keep_expired = \"0s\"\n\
         ```\n",
        keys.join(", "),
    );
    out.push_str(
        "\nWith `certificates.phrase` set, or a database on a server, the defaults are npm's: root 365d, intermediate 30d, both leaves 7d,\n\
         1000000 iterations.\n",
    );
    out
}

fn default(setting: &Setting, defaults: &HubConfig) -> String {
    let shown = (setting.show)(defaults);
    match shown.strip_prefix('(').and_then(|shown| shown.strip_suffix(')')) {
        Some(described) => described.to_owned(),
        None => shown,
    }
}
