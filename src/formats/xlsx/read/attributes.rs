//! The attributes of SpreadsheetML (ECMA-376, part 1, section 18), and those of their values that other programs parse:
//! they refuse a workbook with an unknown attribute, or with a wrong value.

/// The names of more than one letter in workbooks, sheets, styles and shared strings, sorted.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "aboveAverage", "aca", "activeCell", "activeCellId", "activeCol", "activePane", "activeRow",
    "activeSheetId", "activeTab", "algorithmName", "alignWithMargins", "alignment", "allowBlank", "allowPng",
    "allowRefreshQuery", "altText", "and", "appName", "applyAlignment", "applyBorder", "applyFill",
    "applyFont", "applyNumberFormat", "applyProtection", "applyStyles", "auto", "autoCompressPictures",
    "autoFill", "autoFilter", "autoFilterDateGrouping", "autoLine", "autoLoad", "autoPageBreaks", "autoPict",
    "autoRecover", "autoRepublish", "autoUpdate", "avgSubtotal", "axis", "backupFile", "baseColWidth",
    "bestFit", "blackAndWhite", "blank", "borderId", "bottom", "builtInGroupCount", "builtinId", "byPosition",
    "cacheId", "cacheIndex", "calcCompleted", "calcId", "calcMode", "calcOnSave", "calculatedColumn",
    "calendarType", "caseSensitive", "cellColor", "cellComments", "cf", "changesSavedWin", "characterSet",
    "checkCompatibility", "click", "cm", "codeName", "codePage", "colId", "collapsed",
    "collapsedLevelsAreSubtotals", "colorId", "columnSort", "comment", "concurrentCalc",
    "concurrentManualCount", "conformance", "copies", "count", "countASubtotal", "countSubtotal", "crashSave",
    "css", "current", "customBuiltin", "customFormat", "customHeight", "customList", "customMenu",
    "customWidth", "data", "dataExtractLoad", "dataOnly", "date1904", "dateCompatibility", "dateTimeGrouping",
    "day", "dde", "defaultColWidth", "defaultGridColor", "defaultPivotStyle", "defaultRowHeight",
    "defaultSize", "defaultSubtotal", "defaultTableStyle", "defaultThemeVersion", "degree", "deleteColumns",
    "deleteRows", "deleted", "descending", "description", "destinationFile", "diagonalDown", "diagonalUp",
    "differentFirst", "differentOddEven", "dimension", "disablePrompts", "disabled", "display", "displayName",
    "divId", "dpi", "draft", "dvAspect", "dxfId", "dyDescent", "eb", "embed", "emptyCellReference",
    "enableFormatConditionsCalculation", "equalAverage", "error", "errorStyle", "errorTitle", "errors",
    "evalError", "exclude", "extendable", "field", "fieldPosition", "fillId", "filterMode", "filterPrivacy",
    "filterVal", "firstPageNumber", "firstSheet", "fitToHeight", "fitToPage", "fitToWidth", "fontId",
    "footer", "forceFullCalc", "formatCells", "formatCode", "formatColumns", "formatRows", "formula",
    "formulaRange", "fullCalcOnLoad", "fullPrecision", "function", "functionGroupId", "grandCol", "grandRow",
    "gridLines", "gridLinesSet", "gte", "guid", "hashValue", "header", "headings", "help", "hidden",
    "hiddenButton", "hidePivotFieldList", "horizontal", "horizontalCentered", "horizontalDpi", "hour", "ht",
    "iLevel", "iconId", "iconSet", "id", "imeMode", "includeHiddenRowCol", "includePrintSettings", "indent",
    "indexed", "insertColumns", "insertHyperlinks", "insertRows", "iterate", "iterateCount", "iterateDelta",
    "justifyLastLine", "keepAlive", "key", "label", "labelOnly", "lastEdited", "left", "leftLabels", "link",
    "linkedCell", "listDataValidation", "listFillRange", "localSheetId", "location", "lockRevision",
    "lockStructure", "lockWindows", "locked", "longFileNames", "lowestEdited", "macro", "man",
    "manualBreakCount", "max", "maxLength", "maxSubtotal", "maxVal", "maxValIso", "maximized",
    "mergeInterval", "min", "minLength", "minSubtotal", "minimized", "minute", "month", "moveWithCells",
    "name", "namespaceUri", "numFmtId", "numberStoredAsText", "objects", "offset", "oleUpdate", "onlySync",
    "operator", "orientation", "outline", "outlineLevel", "outlineLevelCol", "outlineLevelRow", "pageOrder",
    "pane", "paperHeight", "paperSize", "paperWidth", "password", "patternType", "percent", "personalView",
    "ph", "phonetic", "pivot", "pivotButton", "pivotTables", "position", "previousCol", "previousRow",
    "print", "priority", "productSubtotal", "progId", "prompt", "promptTitle", "promptedSolutions", "pt",
    "publishItems", "publishToServer", "published", "quotePrefix", "rank", "readOnlyRecommended",
    "readingOrder", "recalcAlways", "ref", "refMode", "refreshAllConnections", "relative", "relativeIndent",
    "repairLoad", "reservationPassword", "reverse", "revisionsAlgorithmName", "revisionsHashValue",
    "revisionsPassword", "revisionsPasswordCharacterSet", "revisionsSaltValue", "revisionsSpinCount", "rgb",
    "right", "rightToLeft", "rupBuild", "saltValue", "saveExternalLinkValues", "sb", "scale", "scaleWithDoc",
    "scenarios", "second", "securityDescriptor", "selectLockedCells", "selectUnlockedCells", "selected",
    "shapeId", "sheet", "sheetId", "shortcutKey", "show", "showBorderUnselectedTables", "showButton",
    "showComments", "showDropDown", "showErrorMessage", "showFormulaBar", "showFormulas", "showGridLines",
    "showHeader", "showHorizontalScroll", "showInkAnnotation", "showInputMessage", "showObjects",
    "showOutlineSymbols", "showPivotChartFilter", "showRowColHeaders", "showRuler", "showSheetTabs",
    "showStatusbar", "showValue", "showVerticalScroll", "showWhiteSpace", "showZeros", "shrinkToFit", "si",
    "size", "sizeWithCells", "sort", "sortBy", "sortMethod", "sourceObject", "spans", "spinCount", "sqref",
    "start", "startLabels", "state", "statusBar", "stdDev", "stdDevPSubtotal", "stdDevSubtotal", "stopIfTrue",
    "style", "sumSubtotal", "summaryBelow", "summaryRight", "syncHorizontal", "syncRef", "syncVertical",
    "tabRatio", "tabSelected", "table", "targetScreenSize", "text", "textRotation", "theme", "thickBot",
    "thickBottom", "thickTop", "thicket", "timePeriod", "tint", "title", "tooltip", "top", "topLabels",
    "topLeftCell", "transitionEntry", "transitionEvaluation", "twoDigitTextYear", "type", "uiObject",
    "undone", "uniqueCount", "unlockedFormula", "updateLinks", "uri", "url", "useFirstPageNumber",
    "usePrinterDefaults", "user", "userName", "val", "valIso", "varPSubtotal", "varSubtotal", "vbProcedure",
    "vertical", "verticalCentered", "verticalDpi", "view", "visibility", "vm", "vml", "width", "windowHeight",
    "windowProtection", "windowWidth", "workbookAlgorithmName", "workbookHashValue", "workbookParameter",
    "workbookPassword", "workbookPasswordCharacterSet", "workbookSaltValue", "workbookSpinCount",
    "workbookViewId", "wrapText", "xSplit", "xWindow", "xfId", "xlm", "xmlBased", "xmlns", "ySplit",
    "yWindow", "year", "zeroHeight", "zoomScale", "zoomScaleNormal", "zoomScalePageLayoutView",
    "zoomScaleSheetLayoutView", "zoomToFit",
];

/// Attributes that are numbers in every element, sorted.
#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "activeTab", "baseColWidth", "borderId", "builtinId", "calcId", "count", "defaultColWidth",
    "defaultRowHeight", "defaultThemeVersion", "fillId", "firstSheet", "fitToHeight", "fitToWidth", "fontId",
    "horizontalDpi", "ht", "indent", "indexed", "localSheetId", "numFmtId", "outlineLevelCol",
    "outlineLevelRow", "paperSize", "sheetId", "tabRatio", "textRotation", "theme", "tint", "uniqueCount",
    "verticalDpi", "width", "windowHeight", "windowWidth", "workbookViewId", "xSplit", "xWindow", "xfId",
    "ySplit", "yWindow", "zoomScale", "zoomScaleNormal",
];

const BOOLEAN: &str = "0 1 false true";
const HORIZONTAL: &str = "general left center right fill justify centerContinuous distributed";
const VERTICAL: &str = "top center bottom justify distributed";
const ORIENTATION: &str = "default portrait landscape";
const PANE: &str = "bottomRight topRight bottomLeft topLeft";
const STATE: &str = "split frozen frozenSplit visible hidden veryHidden";
const PATTERN: &str = "none solid mediumGray darkGray lightGray darkHorizontal darkVertical darkDown darkUp \
    darkGrid darkTrellis lightHorizontal lightVertical lightDown lightUp lightGrid lightTrellis gray125 gray0625";
const LINE: &str = "none thin medium dashed dotted thick double hair mediumDashed dashDot mediumDashDot \
    dashDotDot mediumDashDotDot slantDashDot";

/// Returns whether SpreadsheetML has an attribute with this name. Those of other vocabularies have a prefix.
pub(super) fn is_known(name: &[u8]) -> bool {
    match name {
        [letter] => b"rst".contains(letter),
        _ if name.contains(&b':') => true,
        _ => NAMES
            .binary_search_by(|known| known.as_bytes().cmp(name))
            .is_ok(),
    }
}

/// Returns whether the attribute `name` of an element may have this value. Most attributes may have any.
pub(super) fn is_sound(element: &[u8], name: &[u8], value: &[u8]) -> bool {
    let Ok(value) = std::str::from_utf8(value) else {
        return false;
    };
    match (element, name) {
        // Checked when they are read.
        (b"c", _) => true,
        (b"col", b"min" | b"max") | (b"pageMargins", _) | (b"sz" | b"family", b"val") => {
            is_number(value)
        }
        (_, b"horizontal") => is_one_of(value, HORIZONTAL),
        (_, b"vertical") => is_one_of(value, VERTICAL),
        (_, b"orientation") => is_one_of(value, ORIENTATION),
        (_, b"activePane" | b"pane") => is_one_of(value, PANE),
        (_, b"date1904") => is_one_of(value, BOOLEAN),
        (_, b"state") => is_one_of(value, STATE),
        (_, b"patternType") => is_one_of(value, PATTERN),
        (b"left" | b"right" | b"top" | b"bottom" | b"diagonal", b"style") => is_one_of(value, LINE),
        (_, b"rgb") => {
            matches!(value.len(), 6 | 8) && value.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        (_, b"activeCell" | b"topLeftCell" | b"sqref") => {
            let is_reference = |byte: u8| byte.is_ascii_alphanumeric() || b"$: ".contains(&byte);
            value.bytes().all(is_reference)
        }
        _ => {
            let is_numeric = NUMBERS
                .binary_search_by(|known| known.as_bytes().cmp(name))
                .is_ok();
            !is_numeric || is_number(value)
        }
    }
}

/// Returns whether programs read `value` as a number.
pub(super) fn is_number(value: &str) -> bool {
    // `inf` and `NaN` are not numbers in a workbook.
    value.ends_with(|letter: char| letter.is_ascii_digit()) && value.parse::<f64>().is_ok()
}

fn is_one_of(value: &str, choices: &str) -> bool {
    choices
        .split_ascii_whitespace()
        .any(|choice| choice == value)
}

/// Returns whether `value` may be the name of a namespace: braces mark one in programs that read it.
pub(super) fn is_namespace(value: &[u8]) -> bool {
    !value.iter().any(|byte| b"{}<>\"\\^`| ".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_where_other_programs_parse_them() {
        assert!(NUMBERS.is_sorted(), "they are searched in order");
        for (element, name, value, expected) in [
            ("col", "width", "23.28515625", true),
            ("col", "width", "23.28515+25", false),
            ("col", "min", "q", false),
            ("row", "ht", "1e2", true),
            ("workbookPr", "defaultThemeVersion", "1242q6", false),
            ("sheetFormatPr", "defaultRowHeight", "inf", false),
            ("alignment", "horizontal", "centerContinuous", true),
            ("alignment", "horizontal", "luft", false),
            ("workbookPr", "date1904", "false", true),
            ("workbookPr", "date1904", "on", false),
            ("workbookPr", "date1904", " 1 ", false),
            ("pane", "state", "frozen", true),
            ("sheet", "state", "veryHidden", true),
            ("pane", "activePane", "bottomRighu", false),
            ("color", "rgb", "FF0563C1", true),
            ("color", "rgb", "FF0563G1", false),
            ("color", "tint", "-0.249977111117893", true),
            ("bottom", "style", "thin", true),
            ("bottom", "style", "thim", false),
            ("col", "style", "11", true),
            ("selection", "sqref", "A1:B2 C3", true),
            ("selection", "sqref", "A1;B2", false),
            ("definedName", "name", "anything", true),
        ] {
            let found = is_sound(element.as_bytes(), name.as_bytes(), value.as_bytes());
            assert_eq!(found, expected, "{element} {name}={value}");
        }
        assert!(is_namespace(b"http://www.w3.org/2001/XMLSchema-instance"));
        assert!(!is_namespace(b"http://www.w3.org/2}01/XMLSchema-instance"));
    }

    #[test]
    fn attributes_are_known_by_their_spelling() {
        assert!(NAMES.is_sorted(), "they are searched in order");
        for name in [
            "r",
            "customWidth",
            "numFmtId",
            "xml:space",
            "xmlns",
            "xmlns:r",
            "activeCell",
            "zoomToFit",
            "and",
            "aboveAverage",
        ] {
            assert!(is_known(name.as_bytes()), "{name}");
        }
        for name in ["", "q", "custAmWidth", "numFmvId", "Val"] {
            assert!(!is_known(name.as_bytes()), "{name}");
        }
    }
}
