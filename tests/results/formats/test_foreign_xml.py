"""XML of tools whose own format is not read: refused with the switch that makes the tool write one that is."""

from __future__ import annotations

import pytest
from nightjar_formats.readers.xml.foreign import ROOTS

from tests.results.formats.samples import cases_of, refusal

CHECK = """<?xml version="1.0"?>
<testsuites xmlns="http://check.sourceforge.net/ns"><datetime>2026-11-20 05:10:00</datetime><suite><title>dma</title>
<test result="failure"><path>.</path><fn>dma.c:4</fn><id>fills</id><message>n is 3</message></test></suite>
</testsuites>"""
CPPUNIT = "<TestRun><FailedTests/><SuccessfulTests><Test id='1'><Name>a</Name></Test></SuccessfulTests></TestRun>"
CUNIT = '<?xml version="1.0" ?>\n<!DOCTYPE CUNIT_TEST_RUN_REPORT SYSTEM "CUnit-Run.dtd">\n<CUNIT_TEST_RUN_REPORT/>'
ALLURE = '<ns2:test-suite xmlns:ns2="urn:model.allure.qatools.yandex.ru"><test-cases/></ns2:test-suite>'
OPEN_TEST = '<e:events xmlns:e="https://schemas.opentest4j.org/reporting/events/0.2.0"/>'


@pytest.mark.parametrize(
    ("document", "switch"),
    [
        ('<robot generator="Robot 7.0"><suite id="s1"/></robot>', "--xunit junit.xml"),
        ('<Catch name="dma"><Group name="dma"/></Catch>', "--reporter junit"),
        ('<Catch2TestRun name="dma" rng-seed="1"/>', "--reporter junit"),
        ('<?xml version="1.0"?>\n<doctest binary="d"><TestSuite/></doctest>', "--reporters=junit"),
        ("<TestResult><TestSuite name='dma'/></TestResult>", "--log_format=JUNIT"),
        ("<TestLog><TestSuite name='dma'/></TestLog>", "--log_format=JUNIT"),
        ('<Site BuildName="Linux-c++" Name="rack1"><Testing/></Site>', "ctest --output-junit"),
        ('<Result suite_name="CTS" suite_plan="cts"><Module name="CtsDma"/></Result>', "XmlResultReporter"),
        ('<TestCase name="tst_Dma"><TestFunction name="fills"/></TestCase>', "junit.xml,junitxml"),
        ("<testng-results failed='0'><suite/></testng-results>", "test-output/junitreports"),
        ("<testExecutions version='1'/>", "the JUnit reporter of the test runner"),
        ("<testrun name='all'><testsuite name='s'/></testrun>", "Maven or Gradle"),
        ("<coverage line-rate='0.9'/>", "upload the JUnit report"),
        ('<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "x.dtd"><plist/>', "xcbeautify --report junit"),
        (CUNIT, "CU_automated_enable_junit_xml"),
        (CPPUNIT, "run it under CTest"),
        (CHECK, "CK_TAP_LOG_FILE_NAME"),
        (ALLURE, "the JUnit reporter of the test runner"),
        (OPEN_TEST, "TEST-*.xml"),
    ],
)
def test_the_own_xml_of_a_tool_is_refused_with_its_switch(document: str, switch: str) -> None:
    assert switch in refusal(document)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("format", ["junit", "xunit-net", "nunit3", "trx"])
def test_a_format_in_the_manifest_changes_nothing(root: str, format: str) -> None:
    assert refusal(f"<{root}><a/></{root}>", format) == refusal(f"<{root}/>", format) == refusal(f"<{root}/>")


@pytest.mark.parametrize(
    "inside",
    [
        "<suite><test/></suite>",  # Check before its namespace
        "<test><input>a</input><result>PASS</result><name>a</name></test>",  # DejaGnu
        "<testsuite name='a'><TestCase name='b'/></testsuite>",
        "<x:testcase xmlns:x='urn:x' name='a'/>",
    ],
)
@pytest.mark.parametrize("root", ["testsuites", "testsuite"])
def test_another_format_under_the_names_of_junit_is_no_empty_report(root: str, inside: str) -> None:
    assert "has no <testcase>, but <" in refusal(f"<{root}>{inside}</{root}>")


@pytest.mark.parametrize(
    "document",
    [
        "<testsuites/>",
        "<testsuite name='s'><properties><property name='a' value='b'/></properties><system-out/></testsuite>",
        "<testsuites><testsuite name='s'/><testsuite name='t'/></testsuites>",
        '<testsuite xmlns="https://maven.apache.org/surefire" name="s"/>',
    ],
)
def test_an_empty_report_stays_an_empty_report(document: str) -> None:
    assert cases_of(document) == []


def test_a_report_with_cases_may_have_other_elements() -> None:
    document = "<testsuites><suiteinfo/><testsuite name='s'><testcase name='a'/><testmeta/></testsuite></testsuites>"
    assert [case.name for case in cases_of(document)] == ["a"]
