//! The comments: several languages and scripts, quotes, commas, line breaks, and characters that start
//! a formula in a spreadsheet.

pub(super) const REMARKS: [&str; 32] = [
    "ok",
    "Row 3, trays 4-6: uneven watering",
    "Supplier says \"primed seed\", looks like it",
    "first scan of the day, lamps cold",
    "-2 trays, dropped on the way",
    "+1 reserve tray",
    "=same lot as last week",
    "@Anna please check tray 7",
    "Path on the old PC: C:\\scans\\bay3\\",
    "tab\tseparated\tnotes",
    "Line one\nline two, \"quoted\"\n\nline four",
    "looks great 🌱🌱🌱",
    "👩‍🌾 scanned by a trainee; fine 👍🏽",
    "Keimung gut, Größe ungleich (Ränder kleiner)",
    "Nachsaat nötig: Reihe 2, Plätze 11–14",
    "Kieming traag, 's nachts te koud",
    "germination inégale, à revoir jeudi",
    "« très bon lot »",
    "Buena emergencia; ojo con la humedad, ¿riego?",
    "Plántulas débiles en la esquina, 5 %",
    "piantine un po' filate, più luce",
    "Sadzonki równe, łodygi krótkie",
    "Çimlenme iyi, birkaç boş göz var",
    "Všetko v poriadku, žiadne straty",
    "всходы дружные, лоток №4 пересеян",
    "φύτρωμα 9/10, λίγο αργό",
    "発芽良好、端の列がやや小さい",
    "发芽整齐，个别穴缺苗",
    "발아 양호, 습도 조절 필요",
    "إنبات جيد، الصف الأول ضعيف",
    "נביטה טובה, שורה 2 דלילה",
    "1/2 tray only; 12.05 and 3-4 are tray numbers, not dates",
];

/// On batches that germinate badly.
pub(super) const LOSSES: [&str; 8] = [
    "heating off overnight, 9 °C in the morning",
    "seed lot suspect, asked the supplier",
    "damping-off in most trays; thrown away, sown again",
    "sown too deep (new drum), see \"settings\"",
    "trays dried out over the weekend",
    "Keimruhe? Saatgut nachbestellt",
    "levée très faible, à ressemer",
    "muizen in de kas, rijen 1-4 leeg",
];

pub(super) const FAILURES: [&str; 6] = [
    "out of focus, scan again",
    "Analysis failed: \"no tray found\"",
    "tray upside down…",
    "Kamera-Fehler (E-17), wiederholen",
    "scanner stopped,\nno images of the second half",
    "📷❌",
];
