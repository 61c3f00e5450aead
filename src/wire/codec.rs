//! Records: units joined by `0x1F`, ended by `0x1E`.
