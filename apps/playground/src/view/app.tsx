import { phase } from '../state/store.ts';
import { Announcer } from './announcer.tsx';
import { ChatPanel } from './chat/chat-panel.tsx';
import { Header } from './header.tsx';
import { MapPanel } from './map/map-panel.tsx';
import { Notice } from './notice.tsx';
import { SidePanel } from './side-panel.tsx';
import { Starting } from './starting.tsx';
import { TimelinePanel } from './timeline/timeline-panel.tsx';
import { Trouble } from './trouble.tsx';

/** On a narrow screen one part is seen at a time: the way to the others. */
function Jumps() {
  return (
    <nav class="jumps" aria-label="Parts of the page">
      <a href="#chat">Chat</a>
      <a href="#map">Memory</a>
      <a href="#timeline">Time line</a>
      <a href="#side">Behind it</a>
    </nav>
  );
}

/** The page. */
export function App() {
  const { value: now } = phase;
  return (
    <>
      <Header />
      <Notice />
      {now.name === 'unsupported' && <Trouble kind="unsupported" text={now.why} />}
      {now.name === 'failed' && <Trouble kind="failed" text={now.message} />}
      {now.name === 'starting' && <Starting what={now.what} share={now.share} />}
      {now.name === 'running' && (
        <main class="stage">
          <ChatPanel />
          <div class="stage-middle">
            <MapPanel />
            <TimelinePanel />
          </div>
          <SidePanel />
          <Jumps />
          <Announcer />
        </main>
      )}
    </>
  );
}
