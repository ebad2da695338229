import { expect, test } from 'vitest';
import { countTests, failures } from './test-report.mjs';

const file = (status, tests) => ({ status, assertionResults: Array.from({ length: tests }) });

test('passed and failed tests are counted as reported', () => {
  const report = { numPassedTests: 5, numFailedTests: 2, testResults: [file('passed', 3), file('failed', 4)] };
  expect(countTests(report, 1)).toEqual({ passed: 5, failed: 2 });
});

test('a file that cannot be loaded counts as one failure', () => {
  const report = { numPassedTests: 5, numFailedTests: 0, testResults: [file('passed', 5), file('failed', 0)] };
  expect(countTests(report, 1)).toEqual({ passed: 5, failed: 1 });
});

test('an error outside of any test counts as one failure', () => {
  const report = { numPassedTests: 5, numFailedTests: 0, testResults: [file('passed', 5)] };
  expect(countTests(report, 1)).toEqual({ passed: 5, failed: 1 });
});

test('a run that leaves no report counts as one failure', () => {
  expect(countTests(undefined, 139)).toEqual({ passed: 0, failed: 1 });
});

test('a failed test is named with its file and the first line of its reason', () => {
  const passed = { status: 'passed', fullName: 'adds', failureMessages: [] };
  const failed = {
    status: 'failed',
    fullName: 'numbers subtract',
    failureMessages: ['expected 1 to be 2\n    at sum.ts:3', 'again'],
  };
  const report = {
    testResults: [{ name: '/project/src/sum.test.ts', status: 'failed', message: '', assertionResults: [passed, failed] }],
  };
  expect(failures(report, '/project')).toEqual(['src/sum.test.ts > numbers subtract: expected 1 to be 2']);
});

test('a file that cannot be loaded is named with its reason', () => {
  const report = {
    testResults: [{ name: '/project/a.test.ts', status: 'failed', message: 'no such module\nat a', assertionResults: [] }],
  };
  expect(failures(report, '/project')).toEqual(['a.test.ts: no such module']);
});

test('a run without a report names nothing', () => {
  expect(failures(undefined, '/')).toEqual([]);
});
