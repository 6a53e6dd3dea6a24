/** What administrators do from day to day, in a browser, and what goes wrong meanwhile. */
import './stories/delivery.ts';
import './stories/night.ts';
import './stories/operating.ts';
import './stories/recorded.ts';
import './stories/reload.ts';
import './stories/roles.ts';
import './stories/together.ts';
import './stories/trouble.ts';
