//! The attributes of SpreadsheetML (ECMA-376, part 1, section 18): other programs refuse a workbook with an unknown
//! one.

/// The names of more than one letter in workbooks, sheets, styles and shared strings, sorted.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "aca", "activeCell", "activeCellId", "activePane", "activeTab", "algorithmName", "alignWithMargins",
    "allowBlank", "allowPng", "appName", "applyAlignment", "applyBorder", "applyFill", "applyFont",
    "applyNumberFormat", "applyProtection", "applyStyles", "auto", "autoCompressPictures", "autoFilter",
    "autoFilterDateGrouping", "autoPageBreaks", "autoRecover", "backupFile", "baseColWidth", "bestFit",
    "blackAndWhite", "borderId", "bottom", "builtinId", "calcCompleted", "calcId", "calcMode", "calcOnSave",
    "calculatedColumn", "calendarType", "caseSensitive", "cellColor", "cellComments", "characterSet",
    "checkCompatibility", "cm", "codeName", "codePage", "colId", "collapsed", "colorId", "columnSort",
    "comment", "concurrentCalc", "concurrentManualCount", "conformance", "copies", "count", "crashSave",
    "customBuiltin", "customFormat", "customHeight", "customList", "customMenu", "customWidth",
    "dataExtractLoad", "date1904", "dateCompatibility", "dateTimeGrouping", "day", "defaultColWidth",
    "defaultGridColor", "defaultPivotStyle", "defaultRowHeight", "defaultTableStyle", "defaultThemeVersion",
    "degree", "deleteColumns", "deleteRows", "descending", "description", "diagonalDown", "diagonalUp",
    "differentFirst", "differentOddEven", "disablePrompts", "display", "displayName", "dpi", "draft", "dxfId",
    "dyDescent", "eb", "emptyCellReference", "enableFormatConditionsCalculation", "equalAverage", "error",
    "errorStyle", "errorTitle", "errors", "evalError", "fillId", "filterMode", "filterPrivacy", "filterVal",
    "firstPageNumber", "firstSheet", "fitToHeight", "fitToPage", "fitToWidth", "fontId", "footer",
    "forceFullCalc", "formatCells", "formatCode", "formatColumns", "formatRows", "formula", "formulaRange",
    "fullCalcOnLoad", "fullPrecision", "function", "functionGroupId", "gridLines", "gridLinesSet", "gte",
    "hashValue", "header", "headings", "help", "hidden", "hiddenButton", "hidePivotFieldList", "horizontal",
    "horizontalCentered", "horizontalDpi", "hour", "ht", "iconId", "iconSet", "id", "imeMode",
    "includeHiddenRowCol", "indent", "indexed", "insertColumns", "insertHyperlinks", "insertRows", "iterate",
    "iterateCount", "iterateDelta", "justifyLastLine", "keepAlive", "lastEdited", "left",
    "listDataValidation", "localSheetId", "location", "lockRevision", "lockStructure", "lockWindows",
    "locked", "lowestEdited", "man", "manualBreakCount", "max", "maxLength", "maxVal", "mergeInterval", "min",
    "minLength", "minimized", "minute", "month", "name", "numFmtId", "numberStoredAsText", "objects",
    "onlySync", "operator", "orientation", "outline", "outlineLevel", "outlineLevelCol", "outlineLevelRow",
    "pageOrder", "pane", "paperHeight", "paperSize", "paperWidth", "password", "patternType", "percent",
    "personalView", "ph", "phonetic", "pivot", "pivotButton", "pivotTables", "position", "priority", "prompt",
    "promptTitle", "promptedSolutions", "pt", "publishItems", "publishToServer", "published", "quotePrefix",
    "rank", "readOnlyRecommended", "readingOrder", "recalcAlways", "ref", "refMode", "refreshAllConnections",
    "relativeIndent", "repairLoad", "reservationPassword", "reverse", "revisionsAlgorithmName",
    "revisionsHashValue", "revisionsPassword", "revisionsSaltValue", "revisionsSpinCount", "rgb", "right",
    "rightToLeft", "rupBuild", "saltValue", "saveExternalLinkValues", "sb", "scale", "scaleWithDoc", "scenarios",
    "second", "selectLockedCells", "selectUnlockedCells", "sheet", "sheetId", "shortcutKey",
    "showBorderUnselectedTables", "showButton", "showComments", "showDropDown", "showErrorMessage",
    "showFormulaBar", "showFormulas", "showGridLines", "showHorizontalScroll", "showInkAnnotation",
    "showInputMessage", "showObjects", "showOutlineSymbols", "showPivotChartFilter", "showRowColHeaders",
    "showRuler", "showSheetTabs", "showStatusbar", "showValue", "showVerticalScroll", "showWhiteSpace",
    "showZeros", "shrinkToFit", "si", "sort", "sortBy", "sortMethod", "spans", "spinCount", "sqref", "state",
    "statusBar", "stdDev", "stopIfTrue", "style", "summaryBelow", "summaryRight", "syncHorizontal", "syncRef",
    "syncVertical", "tabRatio", "tabSelected", "text", "textRotation", "theme", "thickBot", "thickBottom",
    "thickTop", "timePeriod", "tint", "tooltip", "top", "topLeftCell", "transitionEntry",
    "transitionEvaluation", "twoDigitTextYear", "type", "uniqueCount", "unlockedFormula", "updateLinks",
    "uri", "useFirstPageNumber", "usePrinterDefaults", "userName", "val", "vbProcedure", "vertical",
    "verticalCentered", "verticalDpi", "view", "visibility", "vm", "width", "windowHeight",
    "windowProtection", "windowWidth", "workbookAlgorithmName", "workbookHashValue", "workbookParameter",
    "workbookPassword", "workbookSaltValue", "workbookSpinCount", "workbookViewId", "wrapText", "xSplit",
    "xWindow", "xfId", "xlm", "xmlns", "ySplit", "yWindow", "year", "zeroHeight", "zoomScale",
    "zoomScaleNormal", "zoomScalePageLayoutView", "zoomScaleSheetLayoutView", "zoomToFit",
];

/// Returns whether SpreadsheetML has an attribute with this name. Those of other vocabularies have a prefix.
pub(super) fn is_attribute(name: &[u8]) -> bool {
    match name {
        [letter] => b"rst".contains(letter),
        _ if name.contains(&b':') => true,
        _ => NAMES
            .binary_search_by(|known| known.as_bytes().cmp(name))
            .is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(is_attribute(name.as_bytes()), "{name}");
        }
        for name in ["", "q", "custAmWidth", "numFmvId", "Val"] {
            assert!(!is_attribute(name.as_bytes()), "{name}");
        }
    }
}
