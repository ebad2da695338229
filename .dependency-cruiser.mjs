/**
 * Who may import whom. Arrows run downwards only; CONTRIBUTING.md shows the same table to people.
 *
 * A package is entered by its root or a sub-path of its `exports`, never by a file of its inside.
 */
import { libraries } from './scripts/run/workspace.mjs';

/** What the shipped code of each package may import of the others, lowest package first. */
const BELOW = {
  'core-policy': [],
  'scratch-allocator': ['core-policy'],
  'cache-manager': ['core-policy', 'scratch-allocator'],
  'gpu-kernels': [],
  'adapter-kit': ['core-policy', 'scratch-allocator', 'cache-manager'],
  'adapter-attention': ['core-policy', 'scratch-allocator', 'cache-manager', 'adapter-kit', 'gpu-kernels'],
  'adapter-ssm': ['core-policy', 'scratch-allocator', 'cache-manager', 'adapter-kit', 'gpu-kernels'],
  'adapter-legacy': ['core-policy', 'scratch-allocator', 'cache-manager', 'adapter-kit', 'gpu-kernels'],
  'adapter-onnxruntime': ['core-policy', 'scratch-allocator', 'cache-manager', 'adapter-kit'],
  'adapter-connectors': ['core-policy', 'scratch-allocator', 'cache-manager', 'adapter-kit'],
  'adapter-disaggregation': ['core-policy', 'scratch-allocator', 'cache-manager', 'adapter-kit'],
};
/** The engine is the reference consumer: everything that is listed above is below it. */
BELOW['hybrid-engine'] = Object.keys(BELOW);

/** Tests, the rigs they share, benches and the configs of tools: nothing of them is shipped. */
const TESTS = '(?:\\.(?:test|test-d|bench|config)|-rig)\\.tsx?$|^packages/[^/]+/(?:test|bench)/';
const name = (each) => each.folder.slice('packages/'.length);
const oneOf = (names) => `(?:${names.join('|')})`;

const directions = libraries().map((each) => {
  const allowed = BELOW[name(each)];
  if (allowed === undefined)
    throw new Error(`${each.folder} has no place in the order of packages: add it to .dependency-cruiser.mjs`);
  return {
    name: `${name(each)}-imports-downwards`,
    comment: allowed.length === 0 ? 'This package stands by itself.' : `It may import ${allowed.join(', ')}.`,
    severity: 'error',
    from: { path: `^packages/${name(each)}/`, pathNot: TESTS },
    to: {
      path: '^(?:packages|apps|internal)/',
      pathNot: `^packages/${oneOf([...allowed, name(each), ...(name(each) === 'gpu-kernels' ? ['cache-manager'] : [])])}/`,
    },
  };
});

/** Sources of all names that a package lets others import. */
const doors = libraries().flatMap(({ folder, manifest }) =>
  Object.values(manifest.exports)
    .map((targets) => targets['@bufferwise/source'])
    .filter((source) => source !== undefined)
    .map((source) => `${folder}/${source.replace('./', '')}`),
);

const literal = (path) => path.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

export default {
  forbidden: [
    ...directions,
    {
      name: 'gpu-kernels-knows-no-cache',
      comment: 'gpu-kernels takes the PageDevice types of cache-manager, no code of it.',
      severity: 'error',
      from: { path: '^packages/gpu-kernels/', pathNot: TESTS },
      to: { path: '^packages/cache-manager/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'gpu-kernels-tests-import-downwards',
      comment: 'Tests of gpu-kernels may take expected values from scratch-allocator, and nothing of the cache.',
      severity: 'error',
      from: { path: '^packages/gpu-kernels/(?:(?:test|bench)/|.*(?:\\.(?:test|test-d|bench)|-rig)\\.tsx?$)' },
      to: {
        path: '^(?:packages|apps)/',
        pathNot: '^packages/(?:gpu-kernels|scratch-allocator|core-policy)/',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'packages-know-no-app',
      severity: 'error',
      from: { path: '^(?:packages|internal)/' },
      to: { path: '^(?:apps|examples)/' },
    },
    {
      name: 'shipped-code-imports-nothing-private',
      comment: 'What is internal to this repository is never published: only tests and benches may use it.',
      severity: 'error',
      from: { path: '^packages/', pathNot: TESTS },
      to: { path: '^internal/' },
    },
    {
      name: 'no-deep-imports',
      comment: 'Import the root of the package or a sub-path that its exports name.',
      severity: 'error',
      from: { path: '^(packages|apps|internal)/([^/]+)/' },
      to: { path: '^packages/', pathNot: ['^$1/$2/', `^(?:${doors.map(literal).join('|')})$`] },
    },
    {
      name: 'across-packages-by-name',
      comment: 'A relative path out of the package breaks once it is installed by itself.',
      severity: 'error',
      from: { path: '^(packages|apps|internal)/([^/]+)/' },
      to: { path: '^(?:packages|apps|internal)/', pathNot: '^$1/$2/', dependencyTypes: ['local'] },
    },
    {
      name: 'examples-import-what-is-published',
      comment:
        'A program that is copied out of examples/ finds packages by their public names, and nothing else of this repository.',
      severity: 'error',
      from: { path: '^examples/', pathNot: '^examples/test/|\\.config\\.ts$' },
      to: {
        path: '^(?:packages|apps|internal|scripts|models|examples/test)/',
        pathNot: `^(?:${doors.map(literal).join('|')})$`,
      },
    },
    {
      name: 'examples-import-by-name',
      severity: 'error',
      from: { path: '^examples/' },
      to: { path: '^packages/', dependencyTypes: ['local'] },
    },
    {
      name: 'inside-by-file',
      comment: '`index.ts` is for outsiders; inside a package import the file that has what you need.',
      severity: 'error',
      from: { path: '^packages/([^/]+)/src/', pathNot: TESTS },
      to: { path: '^packages/$1/src/index\\.ts$' },
    },
    {
      name: 'no-circles',
      comment: 'Types may mention each other; modules that load each other depend on who was first.',
      severity: 'error',
      from: { path: '^(?:packages|apps|internal|examples)/' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-import-of-tests',
      comment: 'What two tests share gets a file of its own.',
      severity: 'error',
      from: {},
      to: { path: '\\.(?:test|test-d|bench)\\.tsx?$' },
    },
    {
      name: 'rigs-are-for-tests',
      severity: 'error',
      from: { pathNot: TESTS },
      to: { path: '-rig\\.tsx?$' },
    },
    {
      name: 'resolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '/dist/|/\\.cache/' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@bufferwise/source', 'types', 'import', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.mjs', '.js', '.d.ts'],
    },
  },
};
