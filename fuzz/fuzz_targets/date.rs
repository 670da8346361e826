#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trayscan::fuzz::date(data));
