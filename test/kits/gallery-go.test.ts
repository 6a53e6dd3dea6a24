import { testSamples } from '../support/gallery.ts';

testSamples('Go', 'go');
