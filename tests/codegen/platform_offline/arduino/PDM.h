/* The library for the microphone of a Nano 33 BLE: a block comes after every pass through loop(). */
#ifndef PDM_H
#define PDM_H

struct Microphone {
    void onReceive(void (*heard)());
    int begin(int channels, int rate);
    void setGain(int gain);
    int read(void *block, unsigned long size);

    void hear() const
    {
        if (callback != nullptr) {
            callback();
        }
    }

    void (*callback)();
};
extern Microphone PDM;

#endif
