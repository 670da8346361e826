#![no_main]

libfuzzer_sys::fuzz_target!(
    init: {
        // The reader catches panics of its library; the hook of libFuzzer would end the program.
        drop(std::panic::take_hook());
        std::panic::set_hook(Box::new(|_| ()));
    },
    |data: &[u8]| trayscan::fuzz::xlsx(data)
);
