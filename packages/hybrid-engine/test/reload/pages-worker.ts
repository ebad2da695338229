// The whole of an application's worker for its pages.
import '@bufferwise/adapter-connectors/opfs-worker';
