/** Named so that the tests of the repository do not take it for one of theirs. */
export default { test: { include: ['*.suite.mjs'] } };
