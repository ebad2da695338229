import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

/** Runs in Node only, so it is built by itself: everything else must build without the types of Node. */
const nodeOnly = { 'events-zmq': 'src/events/zmq/index.ts' };

export default [
  { ...libraryConfig({ index: 'src/index.ts', testing: 'src/testing/index.ts' }), clean: ['!events-zmq*'] },
  { ...libraryConfig(nodeOnly, { types: ['node'] }), clean: false },
];
